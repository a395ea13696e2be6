// SPDX-License-Identifier: Apache-2.0

/// How long calls took, counted in buckets.
///
/// They are 1/64 of their place wide, so that a percentile is off by at most 1 %, whatever its size.
/// Histograms of several processes add up.
struct LatencyHistogram: Sendable, Equatable {
    /// Buckets in each power of two.
    private static let resolution = 64
    private static let resolutionBits = 6

    private var counts: [Int] = []
    private(set) var count = 0

    /// Adds a call that took so many nanoseconds.
    mutating func record(nanoseconds: Int64) {
        add(1, bucket: Self.bucket(of: UInt64(max(0, nanoseconds))))
    }

    mutating func merge(_ other: LatencyHistogram) {
        for (bucket, number) in other.counts.enumerated() where number > 0 { add(number, bucket: bucket) }
    }

    /// The time in microseconds within which `share` (0 to 1) of the calls were done; nil without calls.
    func microseconds(atShare share: Double) -> Double? {
        guard count > 0 else { return nil }
        let rank = max(1, Int((share * Double(count)).rounded(.up)))
        var seen = 0
        for (bucket, number) in counts.enumerated() {
            seen += number
            if seen >= rank { return Self.middle(of: bucket) / 1000 }
        }
        return nil
    }

    private mutating func add(_ number: Int, bucket: Int) {
        if bucket >= counts.count {
            counts += Array(repeating: 0, count: bucket + 1 - counts.count)
        }
        counts[bucket] += number
        count += number
    }

    /// Below 64 ns every value has its own bucket; above, the leading 7 bits decide.
    private static func bucket(of value: UInt64) -> Int {
        guard value >= UInt64(resolution) else { return Int(value) }
        let exponent = UInt64.bitWidth - 1 - value.leadingZeroBitCount - resolutionBits
        return (exponent + 1) * resolution + Int(value >> UInt64(exponent)) - resolution
    }

    private static func middle(of bucket: Int) -> Double {
        guard bucket >= resolution else { return Double(bucket) }
        let exponent = bucket / resolution - 1
        let width = Double(sign: .plus, exponent: exponent, significand: 1)
        return (Double(bucket % resolution + resolution) + 0.5) * width
    }
}

extension LatencyHistogram: Codable {
    /// Bucket, count, bucket, count…: most buckets are empty.
    init(from decoder: any Decoder) throws {
        let numbers = try decoder.singleValueContainer().decode([Int].self)
        for position in stride(from: 0, to: numbers.count - 1, by: 2) {
            // The most is the bucket of UInt64.max: nothing that comes down a pipe makes this huge.
            let bucket = min(max(0, numbers[position]), 59 * Self.resolution)
            add(numbers[position + 1], bucket: bucket)
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(
            counts.enumerated().filter { $0.element > 0 }.flatMap { [$0.offset, $0.element] }
        )
    }
}
