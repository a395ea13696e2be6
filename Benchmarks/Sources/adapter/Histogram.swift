// SPDX-License-Identifier: Apache-2.0

/// How long operations took, in the buckets of the adapter protocol: exact below 64 ns, then 64 buckets in
/// each power of two.
struct Histogram: Sendable {
    /// Buckets up to 2^41 ns.
    private static let size = 2304
    private var counts = [UInt64](repeating: 0, count: size)
    private(set) var count: UInt64 = 0
    private(set) var sum: UInt64 = 0

    @inline(__always)
    mutating func record(_ nanoseconds: UInt64) {
        counts[Self.bucket(of: nanoseconds)] += 1
        count += 1
        sum += nanoseconds
    }

    mutating func merge(_ other: Histogram) {
        for bucket in counts.indices { counts[bucket] += other.counts[bucket] }
        count += other.count
        sum += other.sum
    }

    /// The time within which `share` of the operations were done; 0 without any.
    func nanoseconds(atShare share: Double) -> Double {
        let rank = max(1, UInt64((share * Double(count)).rounded(.up)))
        var seen: UInt64 = 0
        for (bucket, number) in counts.enumerated() {
            seen += number
            if seen >= rank { return Self.middle(of: bucket) }
        }
        return 0
    }

    /// Bucket and count of those that are not empty.
    var pairs: [[UInt64]] {
        counts.enumerated().filter { $0.element > 0 }.map { [UInt64($0.offset), $0.element] }
    }

    @inline(__always)
    private static func bucket(of value: UInt64) -> Int {
        guard value >= 64 else { return Int(value) }
        let exponent = 63 - value.leadingZeroBitCount
        guard exponent <= 40 else { return size - 1 }
        return (exponent - 5) * 64 + Int((value >> UInt64(exponent - 6)) & 63)
    }

    private static func middle(of bucket: Int) -> Double {
        guard bucket >= 64 else { return Double(bucket) }
        let exponent = bucket / 64 + 5
        let width = Double(UInt64(1) << UInt64(exponent - 6))
        return Double(UInt64(1) << UInt64(exponent)) + (Double(bucket % 64) + 0.5) * width
    }
}
