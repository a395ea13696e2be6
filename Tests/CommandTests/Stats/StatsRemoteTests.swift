// SPDX-License-Identifier: Apache-2.0

import DiskCache
import TestSupport
import Testing

@testable import DiskCacheCommand

/// The output of `stats` for shared servers.
@Suite(.takesTurns) struct StatsRemoteTests {
    private func activity() -> CacheActivity.Remote {
        var activity = CacheActivity.Remote()
        var fast = CacheActivity.Remote.Server(name: "http://a", breaker: "closed")
        fast.answers = 3
        fast.latency = CacheActivity.Remote.Latency(
            median: .microseconds(1200),
            percentile99: .milliseconds(20),
            longest: .milliseconds(30)
        )
        activity.servers = [fast, CacheActivity.Remote.Server(name: "redis://b/0", breaker: "open")]
        activity.waiting = 1234
        return activity
    }

    @Test func `each server is shown with its breaker state and its latencies, if any`() {
        let lines = StatsText.shared(activity()).split(separator: "\n")
        #expect(
            lines.map { $0.split(separator: " ").joined(separator: " ") } == [
                "remote stores", "http://a in use", "median 1.2 ms", "99th percentile 20.0 ms",
                "maximum 30.0 ms", "redis://b/0 not in use", "not sent yet 1 234",
            ]
        )
        #expect(StatsText.shared(nil).isEmpty && StatsText.shared(CacheActivity.Remote()).isEmpty)
    }

    @Test func `the JSON has latencies in seconds`() throws {
        let line = try JSON.line(activity().json)
        #expect(line.contains("\"medianSeconds\":0.0012,") && line.contains("\"waiting\":1234"), "\(line)")
        #expect(line.contains("{\"answers\":0,\"breaker\":\"open\",\"name\":\"redis://b/0\"}"), "\(line)")
    }
}
