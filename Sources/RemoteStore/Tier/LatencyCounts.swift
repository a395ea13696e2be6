// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// A histogram of response times, with four intervals for each power of two.
final class LatencyCounts: Sendable {
    /// The number of intervals, which cover 2^32 µs (72 minutes).
    private static let spans = 124

    private let counts = Locked<[Int]>([Int](repeating: 0, count: LatencyCounts.spans))

    func add(_ span: Duration) {
        let index = Self.index(of: UInt64(max(0, span.saturatingNanoseconds)) / 1000)
        counts.withLock { $0[index] += 1 }
    }

    static func index(of microseconds: UInt64) -> Int {
        guard microseconds >= 4 else { return Int(microseconds) }
        let power = 63 - microseconds.leadingZeroBitCount
        let quarter = Int(microseconds >> UInt64(power - 2)) & 3
        return min(spans - 1, (power - 1) * 4 + quarter)
    }

    /// Returns the exclusive end of an interval in microseconds.
    static func end(of index: Int) -> UInt64 {
        guard index >= 4 else { return UInt64(index) + 1 }
        let (power, quarter) = (index / 4 + 1, UInt64(index % 4))
        return (5 + quarter) << UInt64(power - 2)
    }

    /// The number of answers, and their latency; nil without answers.
    var summary: (count: Int, latency: CacheActivity.Remote.Latency?) {
        let counts = counts.withLock { $0 }
        let total = counts.reduce(0, +)
        guard total > 0 else { return (0, nil) }
        func span(of rank: Int) -> Duration {
            var passed = 0
            for index in counts.indices {
                passed += counts[index]
                if passed >= rank { return .microseconds(Int64(Self.end(of: index))) }
            }
            return .microseconds(Int64(Self.end(of: Self.spans - 1)))
        }
        let latency = CacheActivity.Remote.Latency(
            median: span(of: (total + 1) / 2),
            percentile99: span(of: (total * 99 + 99) / 100),
            longest: span(of: total)
        )
        return (total, latency)
    }
}
