// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// A record of a pack: a value, its key, and its terms.
///
/// ```
/// offset  bytes  contents, little-endian
///      0      4  signature: "rec1"
///      4      4  CRC-32C of all bytes from 8 to the end of the value
///      8      4  length of the terms
///     12      4  length of the value
///     16     32  SHA-256 of the key
///     48      …  terms: the flags, and the fields of an entry's record from `created` on (`Record+Encoding.swift`)
///      …      …  value
/// ```
///
/// It starts at a multiple of 64. It does not contain the SHA-256 of the value, which would take longer to compute than
/// the record takes to write.
struct PackRecord: Sendable {
    let value: Data
    /// The terms; the digest and the checksum of the content are unknown.
    let record: Record

    static let headerSize = 48
    private static let signature: UInt64 = 0x3163_6572

    /// Replaces `bytes` with the record of a value.
    ///
    /// No allocation, if the capacity of `bytes` suffices and the record has no details.
    static func encode(_ value: Span<UInt8>, _ record: Record, for key: Digest, into bytes: inout [UInt8]) {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(Self.signature, width: 8)
        bytes.append(0, width: 4)
        bytes.append(UInt64(value.count), width: 4)
        bytes.append(key)
        record.appendTerms(to: &bytes)
        bytes.replace(UInt64(bytes.count - Self.headerSize), width: 4, at: 8)
        unsafe value.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        bytes.replace(UInt64(CRC32C.checksum(bytes.span.extracting(droppingFirst: 8))), width: 4, at: 4)
    }

    /// Returns whether a record of the key starts at `offset`; does not check it.
    static func isRecord(of key: Digest, at offset: Int, in pack: MappedBytes) -> Bool {
        offset <= pack.count - headerSize && pack.number(at: offset) & 0xffff_ffff == signature
            && pack.number(at: offset + 16) == key.word(0) && pack.number(at: offset + 24) == key.word(1)
            && pack.number(at: offset + 32) == key.word(2) && pack.number(at: offset + 40) == key.word(3)
    }

    /// Returns the key and the size in bytes of the record at `offset`; nil if no record with the right checksum starts there.
    static func whole(at offset: Int, in pack: MappedBytes) -> (key: Digest, size: Int)? {
        guard offset <= pack.count - headerSize else { return nil }
        let (start, lengths) = (pack.number(at: offset), pack.number(at: offset + 8))
        let size = headerSize + Int(lengths & 0xffff_ffff) + Int(lengths >> 32)
        guard start & 0xffff_ffff == signature, size <= pack.count - offset,
            pack.checksum(offset + 8..<offset + size) == UInt32(truncatingIfNeeded: start >> 32)
        else { return nil }
        let words: InlineArray<4, UInt64> = [
            pack.number(at: offset + 16), pack.number(at: offset + 24), pack.number(at: offset + 32),
            pack.number(at: offset + 40),
        ]
        return (Digest(words: words), size)
    }

    /// Copies the record at `offset`; nil if the copy has a wrong checksum, as when the pack is being overwritten.
    ///
    /// Three allocations, two of them for the value, and those of the key's text and of the details.
    init?(of key: Digest, at offset: Int, in pack: MappedBytes) throws(Errno) {
        // Another process may change them at any moment, so the checks and the copy use the same ones.
        let (start, lengths) = (pack.number(at: offset), pack.number(at: offset + 8))
        let terms = Int(lengths & 0xffff_ffff)
        let length = Int(lengths >> 32)
        let begin = offset + Self.headerSize
        guard terms + length <= pack.count - begin else { return nil }
        let encoded = pack.bytes(begin..<begin + terms)
        value = try pack.data(begin + terms..<begin + terms + length)
        guard start >> 32 == UInt64(Self.checksum(lengths, key, encoded, value)) else { return nil }
        let unknown = Content(digest: key, length: length, checksum: 0)
        guard let record = Record(decodingTerms: encoded, of: unknown) else { return nil }
        self.record = record
    }

    /// Returns the checksum of a copied record; the key is the one that the caller has found.
    private static func checksum(_ lengths: UInt64, _ key: Digest, _ terms: [UInt8], _ value: Data) -> UInt32
    {
        var checksum = CRC32C()
        let lengths: InlineArray<1, UInt64> = [lengths.littleEndian]
        checksum.update(unsafe lengths.span.bytes)
        checksum.update(unsafe key.rawWords.span.bytes)
        checksum.update(terms.span)
        checksum.update(value.span)
        return checksum.value
    }
}

extension [UInt8] {
    /// Replaces `width` bytes at `offset` with the lowest bytes of `number`, little-endian.
    fileprivate mutating func replace(_ number: UInt64, width: Int, at offset: Int) {
        for index in 0..<width {
            self[offset + index] = UInt8(truncatingIfNeeded: number >> (8 * UInt64(index)))
        }
    }
}
