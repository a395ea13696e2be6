// SPDX-License-Identifier: Apache-2.0

import Platform

/// Kinds of items in a record's details; unknown ones are skipped, so that later versions can add some.
private enum DetailKind {
    static let entityTag: UInt8 = 1
    static let lastModified: UInt8 = 2
    static let contentType: UInt8 = 3
    static let tag: UInt8 = 4
    static let metadata: UInt8 = 5
    static let staleFor: UInt8 = 6
}

/// Builds the bytes of a record in place, so that they are allocated once.
struct RecordWriter: ~Copyable {
    /// Room for all but details: 38 bytes up to the check, 6 of the time, 5 varints of 10, one of the cost, and a key
    /// of usual length.
    private var head = InlineArray<192, UInt8>(repeating: 0)
    private var count = 38

    init(version: UInt8, digest: Digest) {
        head[0] = version
        var room = head.mutableSpan
        unsafe digest.rawWords.span.withUnsafeBytes { digest in
            unsafe room.withUnsafeMutableBytes { room in
                unsafe UnsafeMutableRawBufferPointer(rebasing: room[2..<34]).copyMemory(from: digest)
            }
        }
    }

    mutating func append(byte: UInt8) {
        head[count] = byte
        count += 1
    }

    mutating func append(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            append(byte: UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(byte: UInt8(rest))
    }

    mutating func append(span milliseconds: Int64) {
        append(varint: Self.code(ofSpan: milliseconds))
    }

    /// Twice the whole seconds, or twice the milliseconds plus one.
    fileprivate static func code(ofSpan milliseconds: Int64) -> UInt64 {
        let value = UInt64(milliseconds)
        return value.isMultiple(of: 1000) ? (value / 1000) << 1 : value << 1 | 1
    }

    mutating func append(milliseconds: Int64) {
        for index in 0..<6 {
            head[count + index] = UInt8(truncatingIfNeeded: milliseconds >> Int64(8 * index))
        }
        count += 6
    }

    /// The record but for its check: what was appended, details as ``items(of:)`` gave them, the key.
    consuming func bytes(flags: UInt8, details: [UInt8], key: String?) -> [UInt8] {
        head[1] = flags
        var text = key ?? ""
        return text.withUTF8 { key in
            let isShort = details.isEmpty && key.count <= head.count - count
            if isShort {
                var room = head.mutableSpan
                unsafe room.withUnsafeMutableBytes { room in
                    unsafe UnsafeMutableRawBufferPointer(rebasing: room[count...]).copyBytes(from: key)
                }
                count += key.count
            }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(isShort ? count : count + details.count + key.count)
            unsafe head.span.extracting(first: count).withUnsafeBufferPointer { head in
                unsafe bytes.append(contentsOf: head)
            }
            if !isShort {
                bytes += details
                unsafe bytes.append(contentsOf: key)
            }
            return bytes
        }
    }

    /// A record's details as bytes, without their length.
    ///
    /// - Parameter staleFor: that of a value that never expires.
    static func items(of details: RecordDetails, staleFor: Duration? = nil) -> [UInt8] {
        var items = RecordItems()
        items.append(DetailKind.entityTag, details.entityTag)
        items.append(DetailKind.lastModified, details.lastModified)
        items.append(DetailKind.contentType, details.contentType)
        for tag in details.tags { items.append(DetailKind.tag, tag) }
        // In order, so that equal details make equal bytes.
        for (name, value) in details.metadata.sorted(by: { $0.key < $1.key }) {
            items.append(DetailKind.metadata, name: name, value: value)
        }
        if let staleFor {
            items.append(DetailKind.staleFor, span: staleFor.saturatingNanoseconds / 1_000_000)
        }
        return items.bytes
    }
}

/// The items of a record's details: kind, varint length, bytes.
private struct RecordItems {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ kind: UInt8, _ text: String?) {
        guard let text else { return }
        append(kind, Array(text.utf8))
    }

    /// A pair: the name's length as a varint, the name, the value.
    mutating func append(_ kind: UInt8, name: String, value: String) {
        var payload: [UInt8] = []
        payload.append(varint: UInt64(name.utf8.count))
        append(kind, payload + name.utf8 + value.utf8)
    }

    mutating func append(_ kind: UInt8, span milliseconds: Int64) {
        var payload: [UInt8] = []
        payload.append(varint: RecordWriter.code(ofSpan: milliseconds))
        append(kind, payload)
    }

    private mutating func append(_ kind: UInt8, _ payload: [UInt8]) {
        bytes.append(kind)
        bytes.append(varint: UInt64(payload.count))
        bytes += payload
    }
}

extension [UInt8] {
    fileprivate mutating func append(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(rest))
    }
}

/// Takes the bytes of a record apart; each step gives nil where they end or make no sense.
struct RecordReader {
    private let bytes: [UInt8]
    private var position: Int
    private let end: Int

    init(_ bytes: [UInt8]) {
        self.init(bytes, bytes.startIndex..<bytes.endIndex)
    }

    private init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
    }

    var remaining: Int { end - position }

    mutating func byte() -> UInt8? {
        guard position < end else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    private mutating func take(_ count: Int) -> Range<Int>? {
        guard count >= 0, count <= remaining else { return nil }
        defer { position += count }
        return position..<position + count
    }

    mutating func digest() -> Digest? {
        guard let range = take(32) else { return nil }
        return Digest(bytes: InlineArray { bytes[range.lowerBound + $0] })
    }

    mutating func check() -> UInt32? {
        guard let range = take(4) else { return nil }
        var value: UInt32 = 0
        for index in 0..<4 { value |= UInt32(bytes[range.lowerBound + index]) << UInt32(8 * index) }
        return value
    }

    mutating func milliseconds() -> Int64? {
        guard let range = take(6) else { return nil }
        var value: Int64 = 0
        for index in 0..<6 { value |= Int64(bytes[range.lowerBound + index]) << Int64(8 * index) }
        return value
    }

    mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = byte() else { return nil }
            let bits = UInt64(byte & 0x7f)
            // The tenth byte has room for one bit only.
            if shift == 63 && byte > 1 { return nil }
            value |= bits << shift
            if byte < 0x80 { return value }
        }
        return nil
    }

    mutating func span() -> Duration? {
        guard let value = varint() else { return nil }
        let amount = Int64(value >> 1)
        return value & 1 == 0 ? .seconds(amount) : .milliseconds(amount)
    }

    mutating func text(_ count: Int) -> String? {
        guard let range = take(count) else { return nil }
        do throws(UTF8.ValidationError) {
            return String(copying: try UTF8Span(validating: bytes.span.extracting(range)))
        } catch {
            return nil
        }
    }

    mutating func details() -> (RecordDetails, staleFor: Duration?)? {
        guard let count = varint().flatMap(Int.init(exactly:)), let range = take(count) else { return nil }
        var items = RecordReader(bytes, range)
        var details = RecordDetails()
        var staleFor: Duration?
        while items.remaining > 0 {
            guard items.item(into: &details, &staleFor) else { return nil }
        }
        return (details, staleFor)
    }

    private mutating func item(into details: inout RecordDetails, _ staleFor: inout Duration?) -> Bool {
        guard let kind = byte(), let count = varint().flatMap(Int.init(exactly:)), let payload = take(count)
        else { return false }
        var reader = RecordReader(bytes, payload)
        if kind == DetailKind.metadata {
            guard let count = reader.varint().flatMap(Int.init(exactly:)), let name = reader.text(count),
                let value = reader.text(reader.remaining)
            else { return false }
            details.metadata[name] = value
            return true
        }
        if kind == DetailKind.staleFor {
            guard let span = reader.span(), reader.remaining == 0 else { return false }
            staleFor = span
            return true
        }
        guard (DetailKind.entityTag...DetailKind.tag).contains(kind) else { return true }
        guard let text = reader.text(count) else { return false }
        switch kind {
        case DetailKind.entityTag: details.entityTag = text
        case DetailKind.lastModified: details.lastModified = text
        case DetailKind.contentType: details.contentType = text
        default: details.tags.append(text)
        }
        return true
    }
}
