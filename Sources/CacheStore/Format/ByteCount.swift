// SPDX-License-Identifier: Apache-2.0

/// A number of bytes.
public struct ByteCount: Sendable, Hashable, Comparable, Codable {
    /// The number.
    public let bytes: Int64

    /// This many bytes; a negative number counts as 0.
    public init(_ bytes: Int64) {
        self.bytes = max(0, bytes)
    }

    /// This many bytes.
    public static func bytes(_ count: Int) -> ByteCount { ByteCount(Int64(count)) }

    /// This many times 1024 bytes, at most what 64 bits hold.
    public static func kibibytes(_ count: Int) -> ByteCount { scaled(count, 1 << 10) }

    /// This many times 1024² bytes, at most what 64 bits hold.
    public static func mebibytes(_ count: Int) -> ByteCount { scaled(count, 1 << 20) }

    /// This many times 1024³ bytes, at most what 64 bits hold.
    public static func gibibytes(_ count: Int) -> ByteCount { scaled(count, 1 << 30) }

    private static func scaled(_ count: Int, _ unit: Int64) -> ByteCount {
        let (product, overflow) = Int64(count).multipliedReportingOverflow(by: unit)
        return ByteCount(overflow ? (count > 0 ? .max : 0) : product)
    }

    /// Orders by number.
    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }

    /// Reads a bare number.
    public init(from decoder: any Decoder) throws {
        self.init(try Int64(from: decoder))
    }

    /// Writes a bare number.
    public func encode(to encoder: any Encoder) throws {
        try bytes.encode(to: encoder)
    }
}
