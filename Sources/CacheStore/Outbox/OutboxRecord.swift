// SPDX-License-Identifier: Apache-2.0

import Platform

/// A record of the outbox: a task for the servers, or the completion of one.
///
/// ```
/// offset  bytes  content
///      0      2  "ob"
///      2      1  version: 1
///      3      1  kind: 1 put, 2 remove, 3 done, 5 follows, 6 carried, 8 doubt, 9 certain
///      4      4  CRC-32C of the record with this field 0, little-endian
///      8      8  number, little-endian
///     16     32  digest of the key; follows, carried: 0
///     48     32  put: digest of the content; else 0
///     80      8  put: length of the content, little-endian; follows: an offset; doubt, certain: a time; else 0
/// ```
///
/// All records have the same length, so that a torn or damaged one does not affect the others. The bytes of a value are in
/// the cache, not here: if they are no longer in the cache, there is nothing to send.
package struct OutboxRecord: Sendable, Hashable {
    package enum Work: Sendable, Hashable {
        /// Send an entry, and its content if the server lacks it.
        case put(content: Digest, length: Int)
        case remove
        /// The change with this number is done, or was abandoned.
        case done
        /// The first record of a file that replaced another one and covers it up to an offset; later records of that file
        /// must still be carried over.
        case follows(upTo: Int64)
        /// The records were carried over; the number is the number of ``follows(upTo:)``.
        case carried
        /// Until this time, in milliseconds since 1970, a server may still execute an unanswered request about this key.
        ///
        /// Send the key again afterwards.
        case doubt(until: Int64)
        /// The key was sent again after this time, so doubts up to this time no longer apply.
        case certain(until: Int64)
    }

    package static let size = 88

    /// Of a put or a removal, its version (``ChangeVersion``); of *done*, that of the change; otherwise a number that no other
    /// process chooses (``freshNumber()``).
    package let number: UInt64
    /// The digest of the key.
    package let entry: Digest
    package let work: Work

    /// Whether the sender writes such records, and not those who change values.
    var isOfSender: Bool {
        switch work {
        case .put, .remove: false
        case .done, .doubt, .certain, .follows, .carried: true
        }
    }

    package init(number: UInt64, entry: Digest, work: Work) {
        self.number = number
        self.entry = entry
        self.work = work
    }

    package func encoded() -> [UInt8] {
        let (kind, content, length): (UInt8, Digest?, Int) =
            switch work {
            case .put(let content, let length): (1, content, length)
            case .remove: (2, nil, 0)
            case .done: (3, nil, 0)
            case .follows(let offset): (5, nil, Int(offset))
            case .carried: (6, nil, 0)
            case .doubt(let moment): (8, nil, Int(moment))
            case .certain(let moment): (9, nil, Int(moment))
            }
        var bytes = [UInt8(ascii: "o"), UInt8(ascii: "b"), 1, kind, 0, 0, 0, 0]
        bytes.reserveCapacity(Self.size)
        bytes.append(littleEndian: number)
        bytes += (0..<32).map(entry.byte)
        bytes += content.map { content in (0..<32).map(content.byte) } ?? [UInt8](repeating: 0, count: 32)
        bytes.append(littleEndian: UInt64(length))
        let check = CRC32C.checksum(bytes.span)
        for index in 0..<4 { bytes[4 + index] = UInt8(truncatingIfNeeded: check >> (8 * UInt32(index))) }
        return bytes
    }

    /// Reads the record at an offset of a journal's bytes, without copying them.
    ///
    /// - Returns: nil for any bytes that ``encoded()`` did not write.
    package init?(decoding bytes: Span<UInt8>, at start: Int = 0) {
        guard bytes.count - start >= Self.size, bytes[start] == UInt8(ascii: "o"),
            bytes[start + 1] == UInt8(ascii: "b"), bytes[start + 2] == 1,
            Self.check(bytes, at: start) == UInt32(truncatingIfNeeded: Self.number(bytes, at: start + 4))
        else { return nil }
        number = Self.number(bytes, at: start + 8)
        entry = Self.digest(bytes, at: start + 16)
        switch bytes[start + 3] {
        case 1:
            guard let length = Int(exactly: Self.number(bytes, at: start + 80)) else { return nil }
            work = .put(content: Self.digest(bytes, at: start + 48), length: length)
        case 2: work = .remove
        case 3: work = .done
        case 5:
            guard let offset = Int64(exactly: Self.number(bytes, at: start + 80)) else { return nil }
            work = .follows(upTo: offset)
        case 6: work = .carried
        case 8, 9:
            guard let moment = Int64(exactly: Self.number(bytes, at: start + 80)) else { return nil }
            work = bytes[start + 3] == 8 ? .doubt(until: moment) : .certain(until: moment)
        default: return nil
        }
    }

    /// Returns the checksum of a record, with 0 in the field that holds it.
    private static func check(_ bytes: Span<UInt8>, at start: Int) -> UInt32 {
        let empty: InlineArray<4, UInt8> = [0, 0, 0, 0]
        var checksum = CRC32C()
        checksum.update(bytes.extracting(start..<start + 4))
        checksum.update(empty.span)
        checksum.update(bytes.extracting(start + 8..<start + Self.size))
        return checksum.value
    }

    /// Creates a record about the file itself, not about a key.
    package init(number: UInt64 = freshNumber(), _ work: Work) {
        self.init(number: number, entry: Digest(bytes: InlineArray(repeating: 0)), work: work)
    }

    /// What a record and the *done* that ends it have in common; changes of two keys may have the same number.
    package struct Identity: Hashable, Sendable {
        let number: UInt64
        let entry: Digest
    }

    package var identity: Identity { Identity(number: number, entry: entry) }

    /// Whether the record is about a key.
    package var isAboutKey: Bool {
        switch work {
        case .follows, .carried: false
        case .put, .remove, .done, .doubt, .certain: true
        }
    }

    private static func number(_ bytes: Span<UInt8>, at start: Int) -> UInt64 {
        // This call is unsafe because not every bit pattern is a value of every type; for an integer every one is.
        unsafe UInt64(littleEndian: bytes.bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self))
    }

    private static func digest(_ bytes: Span<UInt8>, at start: Int) -> Digest {
        unsafe Digest(
            bytes: bytes.bytes.unsafeLoadUnaligned(fromByteOffset: start, as: InlineArray<32, UInt8>.self)
        )
    }
}

extension [UInt8] {
    fileprivate mutating func append(littleEndian number: UInt64) {
        for shift in stride(from: UInt64(0), to: 64, by: 8) {
            append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }
}

extension OutboxRecord {
    /// Returns a hash of the process, the thread and the time, so that no other process chooses the same number.
    package static func freshNumber() -> UInt64 {
        let process = UInt64(UInt32(bitPattern: CurrentProcess.identifier))
        let thread = UInt64(truncatingIfNeeded: threadNumber)
        let moment = UInt64(bitPattern: Timestamp.now.nanoseconds)
        return SplitMix64.mix(moment ^ SplitMix64.mix(process << 32 ^ thread))
    }
}
