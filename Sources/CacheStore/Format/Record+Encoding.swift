// SPDX-License-Identifier: Apache-2.0

import Platform

// The encoding of a record as bytes, version 1.
//
// ```
// offset  bytes  contents
//      0      1  version: 1
//      1      1  flags: which of the optional fields are present
//      2     32  SHA-256 of the content
//     34      4  check, little-endian (below)
//     38   1…10  length of the content: a varint
//      …      6  created: milliseconds since 1970, little-endian
//      …   1…10  expires, as a span after created       flag 01
//      …   1…10  idle lifetime                          flag 02; flag 04: as long as expires − created
//      …   1…10  stale until, as a span after expires   flag 08
//      …      1  cost of the computation                flag 10
//      …   2…11  version of the change: two varints     flag 80
//      …      …  details: varint length, then items     flag 20
//      …      …  key: UTF-8, all the rest               flag 40
// ```
//
// The first varint of the version is twice the difference between its time and `created` in microseconds, or, if that is
// negative, minus twice the difference minus one; the second one is the number of the machine.
//
// A varint is an unsigned LEB128 number: 7 bits per byte, the lowest bits first; the top bit is set in all bytes except
// the last. A span is a varint of twice the whole seconds, or twice the milliseconds plus one. With a key of 16 bytes, a
// lifetime of days, a cost and a content below 256 MiB, a record has 68 bytes, exactly what ext4 can store inside an
// inode of 256 bytes.
//
// The check is the CRC-32C of the content, XORed with the CRC-32C of the key's digest and all other bytes of the record.
// A reader recovers the content's checksum from it. If that matches the content, neither the content nor the record is
// damaged, and the record belongs to this key.

extension Record {
    private static let formatVersion: UInt8 = 1

    /// The longest record in bytes: the kernel's limit for one attribute, xattr(7).
    package static let maximumSize = 65536

    /// The longest key in bytes that is stored as text; of longer keys only the digest is stored.
    ///
    /// A key of 1 KiB still fits in one block together with the other fields.
    package static let longestKey = 1024

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let expires = Flags(rawValue: 0x01)
        static let idle = Flags(rawValue: 0x02)
        static let idleIsLifetime = Flags(rawValue: 0x04)
        static let stale = Flags(rawValue: 0x08)
        static let cost = Flags(rawValue: 0x10)
        static let details = Flags(rawValue: 0x20)
        static let key = Flags(rawValue: 0x40)
        static let version = Flags(rawValue: 0x80)
    }

    /// Returns the bytes of this record for the entry of that name.
    ///
    /// One allocation for a record without details.
    package func encoded(for entry: Digest) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.fixedSize + (key?.utf8.count ?? 0))
        bytes.append(Self.formatVersion)
        bytes.append(0)
        bytes.append(content.digest)
        bytes.append(0, width: 4)
        bytes.append(varint: UInt64(content.length))
        bytes[1] = appendFields(to: &bytes).rawValue
        let check = content.checksum ^ Self.check(of: bytes, for: entry)
        for index in 0..<4 { bytes[34 + index] = UInt8(truncatingIfNeeded: check >> (8 * UInt32(index))) }
        return bytes
    }

    /// Appends everything but the content: the flags, and the fields from `created` on.
    ///
    /// No allocation, if the capacity of `bytes` suffices and there are no details.
    func appendTerms(to bytes: inout [UInt8]) {
        let place = bytes.count
        bytes.append(0)
        bytes[place] = appendFields(to: &bytes).rawValue
    }

    /// Appends the fields from `created` on, and returns the flags.
    private func appendFields(to bytes: inout [UInt8]) -> Flags {
        let details = items
        var flags: Flags = []
        let created = created.milliseconds
        bytes.append(UInt64(bitPattern: created), width: 6)
        if let expires {
            let lifetime = max(0, expires.milliseconds - created)
            flags.insert(.expires)
            bytes.append(span: lifetime)
            if let idle = idleLifetime?.milliseconds {
                flags.insert(idle == lifetime ? .idleIsLifetime : .idle)
                if idle != lifetime { bytes.append(span: idle) }
            }
            if let stale = staleFor {
                flags.insert(.stale)
                bytes.append(span: stale.milliseconds)
            }
        }
        if let cost = core.cost {
            flags.insert(.cost)
            bytes.append(cost)
        }
        if let version = storedVersion {
            flags.insert(.version)
            bytes.append(version, after: created)
        }
        if !details.isEmpty {
            flags.insert(.details)
            bytes.append(varint: UInt64(details.count))
            bytes += details
        }
        if let key {
            flags.insert(.key)
            bytes += key.utf8
        }
        return flags
    }

    /// The maximum size in bytes without details and key: 38 bytes up to the check, 6 for the time, 5 varints of 10, one
    /// for the cost, 11 for the version.
    private static let fixedSize = 106

    /// Parses the result of ``encoded(for:)``; returns nil for any other bytes.
    ///
    /// If a damaged record still parses, its checksum does not match its content, by design.
    package init?(decoding bytes: [UInt8], for entry: Digest) {
        guard bytes.count <= Self.maximumSize else { return nil }
        var reader = ByteReader(bytes)
        guard reader.byte() == Self.formatVersion, let flags = reader.byte().map(Flags.init),
            let digest = reader.digest(), let stored = reader.number(width: 4),
            let length = reader.count(), length < Int.max
        else { return nil }
        let checksum = UInt32(truncatingIfNeeded: stored) ^ Self.check(of: bytes, for: entry)
        self.init(
            Content(digest: digest, length: length, checksum: checksum),
            flags,
            fieldsFrom: &reader
        )
    }

    /// Parses the result of ``appendTerms(to:)``; returns nil for any other bytes.
    init?(decodingTerms bytes: [UInt8], of content: Content) {
        guard bytes.count <= Self.maximumSize else { return nil }
        var reader = ByteReader(bytes)
        guard let flags = reader.byte().map(Flags.init) else { return nil }
        self.init(content, flags, fieldsFrom: &reader)
    }

    private init?(_ content: Content, _ flags: Flags, fieldsFrom reader: inout ByteReader) {
        guard let created = reader.number(width: 6) else { return nil }
        self.init(content: content, created: Timestamp(milliseconds: Int64(bitPattern: created)))
        guard readTimes(from: &reader, flags), readRest(from: &reader, flags) else { return nil }
    }

    private mutating func readTimes(from reader: inout ByteReader, _ flags: Flags) -> Bool {
        guard flags.contains(.expires) else {
            return flags.isDisjoint(with: [.idle, .idleIsLifetime, .stale])
        }
        guard let lifetime = reader.span() else { return false }
        expires = created + lifetime
        if flags.contains(.idleIsLifetime) { idleLifetime = lifetime }
        if flags.contains(.idle) {
            guard let idle = reader.span() else { return false }
            idleLifetime = idle
        }
        if flags.contains(.stale) {
            guard let stale = reader.span() else { return false }
            staleFor = stale
        }
        return true
    }

    private mutating func readRest(from reader: inout ByteReader, _ flags: Flags) -> Bool {
        if flags.contains(.cost) {
            guard let code = reader.byte() else { return false }
            core.cost = code
        }
        if flags.contains(.version) {
            guard let version = reader.version(after: created.milliseconds) else { return false }
            self.version = version
        }
        if flags.contains(.details) {
            guard let count = reader.count(), let items = reader.part(count), read(items)
            else { return false }
        }
        if flags.contains(.key) {
            guard let key = reader.text(reader.remaining) else { return false }
            self.key = key
        }
        return reader.remaining == 0
    }

    /// Returns the CRC-32C of the entry's name and the record without its check.
    private static func check(of bytes: [UInt8], for entry: Digest) -> UInt32 {
        var checksum = CRC32C()
        checksum.update(unsafe entry.rawWords.span.bytes)
        checksum.update(bytes.span.extracting(first: 34))
        checksum.update(bytes.span.extracting(droppingFirst: 38))
        return checksum.value
    }
}

/// A span of time: a varint of twice the whole seconds, or twice the milliseconds plus one.
extension [UInt8] {
    mutating func append(span milliseconds: Int64) {
        let value = UInt64(milliseconds)
        append(varint: value.isMultiple(of: 1000) ? (value / 1000) << 1 : value << 1 | 1)
    }
}

extension ByteReader {
    mutating func span() -> Duration? {
        guard let value = varint() else { return nil }
        let amount = Int64(value >> 1)
        return value & 1 == 0 ? .seconds(amount) : .milliseconds(amount)
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ version: ChangeVersion, after milliseconds: Int64) {
        let difference = version.microseconds - milliseconds * 1000
        append(varint: UInt64(bitPattern: difference << 1 ^ difference >> 63))
        append(varint: version.machine)
    }
}

extension ByteReader {
    fileprivate mutating func version(after milliseconds: Int64) -> ChangeVersion? {
        guard let code = varint(), let machine = varint() else { return nil }
        let difference = Int64(bitPattern: code >> 1) ^ -Int64(code & 1)
        let (microseconds, isTooLarge) = difference.addingReportingOverflow(milliseconds * 1000)
        return isTooLarge ? nil : ChangeVersion(microseconds: microseconds, machine: machine)
    }
}

extension Timestamp {
    /// Whole milliseconds since 1970, rounded down, and 0 for earlier times; the latest `Timestamp` fits in 6 bytes.
    package var milliseconds: Int64 { max(0, nanoseconds / 1_000_000) }

    package init(milliseconds: Int64) {
        self = Timestamp(nanoseconds: 0) + .milliseconds(milliseconds)
    }
}
