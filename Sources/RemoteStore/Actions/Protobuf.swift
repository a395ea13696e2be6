// SPDX-License-Identifier: Apache-2.0

/// The parts of the wire format of Protocol Buffers that an `ActionResult` needs.
enum Protobuf {
    /// The value of a field; fields of fixed width are skipped, because no message here needs them.
    enum Value {
        case number(UInt64)
        /// The range of the field's bytes in the message.
        case bytes(Range<Int>)
    }

    /// Calls `body` for each field of a message, in order; `body` must ignore unknown fields.
    ///
    /// - Parameter range: The range of the message in `bytes`.
    static func readFields(
        of bytes: [UInt8],
        _ range: Range<Int>,
        _ body: (_ field: UInt64, _ value: Value) throws(WireFault) -> Void
    ) throws(WireFault) {
        var position = range.lowerBound
        while position < range.upperBound {
            let tag = try varint(bytes, &position, range.upperBound)
            let field = tag >> 3
            // Field numbers have 29 bits.
            guard field > 0, field < 1 << 29 else { throw .malformed }
            switch tag & 7 {
            case 0: try body(field, .number(try varint(bytes, &position, range.upperBound)))
            case 1: _ = try take(8, &position, range.upperBound)
            case 2:
                let count = try varint(bytes, &position, range.upperBound)
                try body(field, .bytes(try take(count, &position, range.upperBound)))
            case 5: _ = try take(4, &position, range.upperBound)
            // Groups are deprecated, and would need a limit of their depth.
            default: throw .malformed
            }
        }
    }

    private static func take(
        _ count: UInt64,
        _ position: inout Int,
        _ end: Int
    ) throws(WireFault) -> Range<Int> {
        guard count <= UInt64(end - position) else { throw .malformed }
        let start = position
        position += Int(count)
        return start..<position
    }

    private static func varint(_ bytes: [UInt8], _ position: inout Int, _ end: Int) throws(WireFault)
        -> UInt64
    {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard position < end else { throw .malformed }
            let byte = bytes[position]
            position += 1
            // The tenth byte holds only the topmost bit.
            if shift == 63 && byte > 1 { throw .malformed }
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
        }
        throw .malformed
    }
}

/// Fields with the default value (0, no bytes) are omitted, as in proto3.
extension [UInt8] {
    mutating func append(protobufNumber number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(rest))
    }

    mutating func append(field: UInt64, number: UInt64) {
        guard number != 0 else { return }
        append(protobufNumber: field << 3)
        append(protobufNumber: number)
    }

    mutating func append(field: UInt64, bytes: some Collection<UInt8>) {
        guard !bytes.isEmpty else { return }
        append(field: field, message: bytes)
    }

    /// Appends the field even if it has no bytes.
    mutating func append(field: UInt64, message: some Collection<UInt8>) {
        append(protobufNumber: field << 3 | 2)
        append(protobufNumber: UInt64(message.count))
        append(contentsOf: message)
    }
}
