// SPDX-License-Identifier: Apache-2.0

import Platform

/// The encoding of numbers as bytes: little-endian with a fixed width, or as varints.
///
/// A varint is an unsigned LEB128 number: 7 bits per byte, the lowest bits first; the top bit is set in all bytes except
/// the last.
extension [UInt8] {
    /// Creates the UTF-8 bytes of a text, padded with spaces and a final newline to exactly `length` bytes.
    ///
    /// All texts of the same `length` overwrite each other completely. A longer text is truncated.
    init(_ text: String, filledTo length: Int) {
        self.init(repeating: UInt8(ascii: " "), count: length)
        let utf8 = text.utf8.prefix(length - 1)
        replaceSubrange(..<utf8.count, with: utf8)
        self[length - 1] = UInt8(ascii: "\n")
    }

    /// Appends the lowest `width` bytes of `number`, little-endian; `width` is 8 at most.
    mutating func append(_ number: UInt64, width: Int) {
        unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0.prefix(width)) }
    }

    mutating func append(varint number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(rest))
    }

    mutating func append(_ digest: Digest) {
        unsafe digest.rawWords.span.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }
}

/// Parses bytes from the front; each method returns nil if too few bytes are left or the bytes are invalid.
struct ByteReader {
    private let bytes: [UInt8]
    private(set) var position: Int
    private let end: Int

    /// Creates a reader for bytes or a range of them.
    ///
    /// - Parameter range: The range to parse; nil for all bytes.
    init(_ bytes: [UInt8], _ range: Range<Int>? = nil) {
        self.bytes = bytes
        position = range?.lowerBound ?? 0
        end = range?.upperBound ?? bytes.count
    }

    var remaining: Int { end - position }

    private mutating func take(_ count: Int) -> Range<Int>? {
        guard count >= 0, count <= remaining else { return nil }
        defer { position += count }
        return position..<position + count
    }

    mutating func byte() -> UInt8? {
        take(1).map { bytes[$0.lowerBound] }
    }

    /// Returns a little-endian number of `width` bytes.
    mutating func number(width: Int) -> UInt64? {
        guard let range = take(width) else { return nil }
        var value: UInt64 = 0
        for index in range.reversed() { value = value << 8 | UInt64(bytes[index]) }
        return value
    }

    mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = byte() else { return nil }
            // The tenth byte has room for one bit only.
            if shift == 63 && byte > 1 { return nil }
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }

    /// Returns a varint that states how many bytes or items follow.
    mutating func count() -> Int? { varint().flatMap(Int.init(exactly:)) }

    mutating func digest() -> Digest? {
        guard let range = take(32) else { return nil }
        var digest = InlineArray<32, UInt8>(repeating: 0)
        for index in 0..<32 { digest[index] = bytes[range.lowerBound + index] }
        return Digest(bytes: digest)
    }

    mutating func text(_ count: Int) -> String? {
        guard let range = take(count) else { return nil }
        // A sweep calls this for each entry. It takes a third of the instructions of `String(validating:as:)`.
        do throws(UTF8.ValidationError) {
            return String(copying: try UTF8Span(validating: bytes.span.extracting(range)))
        } catch {
            return nil
        }
    }

    /// Returns a reader for the next `count` bytes.
    mutating func part(_ count: Int) -> ByteReader? {
        take(count).map { ByteReader(bytes, $0) }
    }
}
