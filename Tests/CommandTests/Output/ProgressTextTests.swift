// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache
@testable import DiskCacheCommand

@Suite(.takesTurns) struct ProgressTextTests {
    private static let start = ContinuousClock.now

    private func progress(
        _ done: Int,
        of total: Int,
        _ phase: CacheProgress.Phase = .verifying,
        items: Int? = nil,
        bytes: Int64? = nil
    ) -> CacheProgress {
        CacheProgress(phase, done: done, total: total, items: items, bytes: bytes)
    }

    private func line(_ first: CacheProgress, _ last: CacheProgress, after seconds: Double) -> String {
        var text = ProgressText()
        text.hear(first, at: Self.start)
        text.hear(last, at: Self.start + .seconds(seconds))
        return text.line(last, at: Self.start + .seconds(seconds))
    }

    @Test func `only the percentage is shown in the first second`() {
        #expect(line(progress(0, of: 100), progress(5, of: 100), after: 0.9) == "verifying values: 5 %")
        #expect(line(progress(0, of: 0), progress(0, of: 0), after: 2) == "verifying values: 0 %")
    }

    @Test func `the remaining time is extrapolated from the elapsed time`() {
        let text = line(progress(0, of: 1000), progress(250, of: 1000), after: 30)
        #expect(text == "verifying values: 25 %, 1m 30s left")
        #expect(
            line(progress(0, of: 10), progress(10, of: 10), after: 3) == "verifying values: 100 %, 0s left"
        )
    }

    @Test func `no remaining time is shown if nothing is done yet`() {
        #expect(line(progress(0, of: 10), progress(0, of: 10), after: 60) == "verifying values: 0 %")
    }

    @Test func `files and bytes are shown per second`() {
        let first = progress(0, of: 100, items: 0, bytes: 0)
        let last = progress(50, of: 100, items: 24_690, bytes: 3 << 30)
        #expect(
            line(first, last, after: 2)
                == "verifying values: 50 %, 24 690, 12 345/s, 1.5 GiB/s, 2s left"
        )
    }

    @Test func `impossible numbers are shown without an overflow`() {
        let last = progress(1, of: 2, items: .max, bytes: .max)
        #expect(
            line(progress(0, of: 2, items: 0, bytes: 0), last, after: 1)
                == "verifying values: 50 %, 9 223 372 036 854 775 807, 9 223 372 036 854 775 807/s, 8192.0 PiB/s, 1s left"
        )
    }

    @Test func `rates count from the first report of the current phase`() {
        let first = progress(400, of: 1000, .deleting, items: 400)
        let last = progress(500, of: 1000, .deleting, items: 500)
        #expect(line(first, last, after: 10) == "deleting: 50 %, 500, 10/s, 50s left")
        var text = ProgressText()
        text.hear(progress(0, of: 512, .scanning), at: Self.start)
        text.hear(first, at: Self.start + .seconds(100))
        #expect(text.line(first, at: Self.start + .seconds(100)) == "deleting: 40 %, 400")
    }
}
