// SPDX-License-Identifier: Apache-2.0

import DiskCacheHTTP
import TestSupport
import Testing

@testable import diskcache_net

@Suite(.takesTurns) struct FetchProgressTests {
    private static let start = ContinuousClock.now

    private func line(
        _ names: [String],
        _ heard: [(Int, FetchProgress, Double)],
        at seconds: Double
    ) -> String {
        var text = FetchProgressText(names: names)
        for (index, progress, moment) in heard {
            text.hear(progress, of: index, at: Self.start + .seconds(moment))
        }
        return text.line(at: Self.start + .seconds(seconds))
    }

    @Test func `a single download shows percentage, rate and remaining time`() {
        let heard = [
            (0, FetchProgress(received: 0, total: 8 << 20), 0.0),
            (0, FetchProgress(received: 2 << 20, total: 8 << 20), 2.0),
        ]
        #expect(line(["http://a/x"], heard, at: 2) == "http://a/x: 25 %, 2.0 MiB, 1.0 MiB/s, 6s left")
    }

    @Test func `bytes present at the start do not count towards the rate`() {
        let heard = [
            (0, FetchProgress(received: 6 << 20, total: 8 << 20), 0.0),
            (0, FetchProgress(received: 7 << 20, total: 8 << 20), 1.0),
        ]
        #expect(line(["u"], heard, at: 1) == "u: 87 %, 7.0 MiB, 1.0 MiB/s, 1s left")
    }

    @Test func `an unknown length shows no percentage, and the first second no rate`() {
        #expect(line(["u"], [(0, FetchProgress(received: 512), 0)], at: 0.5) == "u: 512 B")
    }

    @Test func `a waiting download names the process that fetches`() {
        let heard = [(0, FetchProgress(received: 512, total: 1024, joinedProcess: 42), 0.0)]
        #expect(line(["u"], heard, at: 0) == "u: process 42 is fetching it, 50 %, 512 B")
    }

    @Test func `several downloads show the sum of the received bytes`() {
        var text = FetchProgressText(names: ["a", "b", "c"])
        text.hear(FetchProgress(received: 0), of: 0, at: Self.start)
        text.hear(FetchProgress(received: 0), of: 1, at: Self.start)
        text.hear(FetchProgress(received: 1024), of: 0, at: Self.start + .seconds(1))
        text.hear(FetchProgress(received: 1024), of: 1, at: Self.start + .seconds(2))
        text.end(0)
        #expect(text.line(at: Self.start + .seconds(2)) == "1 of 3 URLs: 2.0 KiB, 1.0 KiB/s")
    }
}
