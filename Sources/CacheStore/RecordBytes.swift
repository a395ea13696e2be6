// SPDX-License-Identifier: Apache-2.0

import Platform

/// Kinds of items in a record's details; unknown ones are skipped, so that later versions can add some.
private enum DetailKind {
    static let entityTag: UInt8 = 1
    static let lastModified: UInt8 = 2
    static let contentType: UInt8 = 3
    static let tag: UInt8 = 4
    static let metadata: UInt8 = 5
}

/// Builds the bytes of a record.
struct RecordWriter {
    private(set) var bytes: [UInt8] = []

    init(version: UInt8, digest: Digest) {
        bytes.reserveCapacity(96)
        bytes.append(version)
        bytes.append(0)
        unsafe digest.bytes.span.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        for _ in 0..<4 { bytes.append(0) }
    }

    mutating func append(byte: UInt8) {
        bytes.append(byte)
    }

    mutating func append(varint value: UInt64) {
        bytes.append(varint: value)
    }

    mutating func append(span milliseconds: Int64) {
        let value = UInt64(milliseconds)
        append(varint: value.isMultiple(of: 1000) ? (value / 1000) << 1 : value << 1 | 1)
    }

    mutating func append(milliseconds: Int64) {
        for shift in stride(from: Int64(0), to: 48, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: milliseconds >> shift))
        }
    }

    mutating func append(text: String) {
        bytes += text.utf8
    }

    mutating func append(details: RecordDetails) {
        var items = RecordItems()
        items.append(DetailKind.entityTag, details.entityTag)
        items.append(DetailKind.lastModified, details.lastModified)
        items.append(DetailKind.contentType, details.contentType)
        for tag in details.tags { items.append(DetailKind.tag, tag) }
        // In order, so that equal details make equal bytes.
        for (name, value) in details.metadata.sorted(by: { $0.key < $1.key }) {
            items.append(DetailKind.metadata, name: name, value: value)
        }
        append(varint: UInt64(items.bytes.count))
        bytes += items.bytes
    }

    mutating func finish(flags: UInt8) {
        bytes[1] = flags
    }

    mutating func set(check: UInt32) {
        for index in 0..<4 { bytes[34 + index] = UInt8(truncatingIfNeeded: check >> (8 * UInt32(index))) }
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

    mutating func details() -> RecordDetails? {
        guard let count = varint().flatMap(Int.init(exactly:)), let range = take(count) else { return nil }
        var items = RecordReader(bytes, range)
        var details = RecordDetails()
        while items.remaining > 0 {
            guard items.item(into: &details) else { return nil }
        }
        return details
    }

    private mutating func item(into details: inout RecordDetails) -> Bool {
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
