// SPDX-License-Identifier: Apache-2.0

/// The durations of calls, counted in buckets.
///
/// A bucket spans at most 1/64 of its durations, so a percentile is off by less than 1 %.
package struct LatencyHistogram: Codable, Sendable, Equatable {
    /// The counts by ``bucket(of:)``.
    private var counts: [Int: Int] = [:]

    package init() {}

    /// The number of calls.
    package var count: Int { counts.values.reduce(0, +) }

    /// Adds one call.
    package mutating func record(nanoseconds: Int64) {
        counts[Self.bucket(of: nanoseconds), default: 0] += 1
    }

    package mutating func merge(_ other: LatencyHistogram) {
        counts.merge(other.counts, uniquingKeysWith: +)
    }

    /// Returns the time in microseconds within which `share` (0 to 1) of the calls returned; nil if there are no calls.
    package func microseconds(atShare share: Double) -> Double? {
        var left = max(1, Int((share * Double(count)).rounded(.up)))
        for (bucket, number) in counts.sorted(by: { $0.key < $1.key }) {
            left -= number
            if left <= 0 { return Self.middle(of: bucket) / 1000 }
        }
        return nil
    }

    /// The number of low bits to drop; the exponent and six leading bits of a Double give 64 buckets per power of two.
    private static let droppedBits = UInt64(Double.significandBitCount - 6)

    private static func bucket(of nanoseconds: Int64) -> Int {
        Int(Double(max(0, nanoseconds)).bitPattern >> droppedBits)
    }

    private static func middle(of bucket: Int) -> Double {
        Double(bitPattern: UInt64(bucket) << droppedBits | 1 << (droppedBits - 1))
    }
}
