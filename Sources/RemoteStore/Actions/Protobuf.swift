// SPDX-License-Identifier: Apache-2.0

/// The wire format of protocol buffers, as far as an ActionResult needs it.
enum Protobuf {
    /// A field's value; those of fixed width have no use here and are skipped.
    enum Value {
        case number(UInt64)
        /// Where its bytes are.
        case bytes(Range<Int>)
    }

    /// Hands each field of a message to `body`, in order; what it doesn't know it leaves alone.
    ///
    /// - Parameter range: where the message is.
    static func readFields(
        of bytes: [UInt8],
        _ range: Range<Int>,
        _ body: (_ field: UInt64, _ value: Value) throws(WireFault) -> Void
    ) throws(WireFault) {
        var position = range.lowerBound
        while position < range.upperBound {
            let tag = try varint(bytes, &position, range.upperBound)
            let field = tag >> 3
            // Numbers have 29 bits.
            guard field > 0, field < 1 << 29 else { throw .malformed }
            switch tag & 7 {
            case 0: try body(field, .number(try varint(bytes, &position, range.upperBound)))
            case 1: _ = try take(8, &position, range.upperBound)
            case 2:
                let count = try varint(bytes, &position, range.upperBound)
                try body(field, .bytes(try take(count, &position, range.upperBound)))
            case 5: _ = try take(4, &position, range.upperBound)
            // Groups were given up long ago, and would need a limit of depth.
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
            // The tenth byte has room for one bit only.
            if shift == 63 && byte > 1 { throw .malformed }
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
        }
        throw .malformed
    }
}

/// Fields with the value that stands for nothing (0, no bytes) are left out, as proto3 has it.
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

    /// Also where it has no bytes.
    mutating func append(field: UInt64, message: some Collection<UInt8>) {
        append(protobufNumber: field << 3 | 2)
        append(protobufNumber: UInt64(message.count))
        append(contentsOf: message)
    }
}
