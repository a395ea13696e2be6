// SPDX-License-Identifier: Apache-2.0

/// Decodes replies from Redis, in versions 2 and 3 of its protocol, from pieces of any size.
///
/// After a fault nothing more can be decoded: the caller must close the connection. Memory is allocated only for bytes
/// that have arrived, within the limits, never for announced lengths. The work is proportional to the number of bytes,
/// however they are split.
package struct RedisDecoder: Sendable {
    /// The limits of a reply.
    package struct Limits: Sendable {
        /// The maximum length of a string in bytes, which limits the values that can be read.
        package var longestBulk = 512 << 20
        /// The maximum length of a line in bytes; numbers and errors are short.
        package var longestLine = 16 << 10
        /// The maximum number of replies within one reply, at any depth.
        package var mostElements = 4096
        /// The maximum nesting of arrays.
        package var deepest = 8

        package init() {}
    }

    /// An incomplete array.
    private struct Frame {
        let kind: UInt8
        var missing: Int
        var elements: [RedisReply] = []
    }

    private let limits: Limits
    private var buffer: [UInt8] = []
    private var position = 0
    /// The index before which no line ends.
    private var scanned = 0
    private var frames: [Frame] = []
    private var elementCount = 0
    /// The type and length of a string whose head was read.
    private var announced: (kind: UInt8, length: Int)?

    package init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Appends received bytes.
    package mutating func append(_ bytes: some Collection<UInt8>) {
        // Decoded bytes are removed once they make up more than half of the buffer.
        if position > 4096, position * 2 > buffer.count {
            buffer.removeFirst(position)
            scanned = max(0, scanned - position)
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The number of received bytes that are not yet decoded.
    package var waitingBytes: Int { buffer.count - position }

    /// Returns the next complete reply, or nil if more bytes are needed.
    package mutating func next() throws(WireFault) -> RedisReply? {
        while true {
            guard let token = try nextToken() else { return nil }
            if let reply = finished(by: token) {
                elementCount = 0
                return reply
            }
        }
    }

    // MARK: Nesting

    private enum Token {
        case reply(RedisReply)
        /// An array has begun; it is on the stack.
        case opened
    }

    /// Adds a reply to the array that contains it; returns the outermost reply if that is now complete.
    private mutating func finished(by token: Token) -> RedisReply? {
        if case .reply(let reply) = token {
            guard !frames.isEmpty else { return reply }
            frames[frames.count - 1].elements.append(reply)
            frames[frames.count - 1].missing -= 1
        }
        while let frame = frames.last, frame.missing == 0 {
            frames.removeLast()
            // An attribute describes the reply that follows it; callers do not need attributes.
            guard let reply = Self.reply(of: frame) else { continue }
            guard !frames.isEmpty else { return reply }
            frames[frames.count - 1].elements.append(reply)
            frames[frames.count - 1].missing -= 1
        }
        return nil
    }

    private static func reply(of frame: Frame) -> RedisReply? {
        switch frame.kind {
        case UInt8(ascii: "|"): nil
        case UInt8(ascii: "%"): .map(frame.elements)
        case UInt8(ascii: ">"): .push(frame.elements)
        default: .array(frame.elements)
        }
    }

    // MARK: Tokens

    private mutating func nextToken() throws(WireFault) -> Token? {
        if announced != nil { return try bulkToken() }
        guard let line = try line() else { return nil }
        guard let kind = buffer[line].first else { throw .malformed }
        let text = buffer[line.dropFirst()]
        switch kind {
        case UInt8(ascii: "$"), UInt8(ascii: "!"), UInt8(ascii: "="):
            // Version 2 encodes null as a string of length -1.
            guard let length = try count(text, upTo: .max) else { return try scalar(.null) }
            guard length <= limits.longestBulk else { throw .longValue }
            announced = (kind, length)
            return try bulkToken()
        case UInt8(ascii: "*"), UInt8(ascii: "~"), UInt8(ascii: "%"), UInt8(ascii: ">"), UInt8(ascii: "|"):
            guard let count = try count(text, upTo: limits.mostElements) else { return try scalar(.null) }
            return try open(kind, count)
        default:
            return try scalar(try Self.scalar(kind, Array(text)))
        }
    }

    private mutating func open(_ kind: UInt8, _ count: Int) throws(WireFault) -> Token {
        let isPaired = kind == UInt8(ascii: "%") || kind == UInt8(ascii: "|")
        try countElement()
        guard frames.count < limits.deepest else { throw .tooLong }
        frames.append(Frame(kind: kind, missing: isPaired ? count * 2 : count))
        return .opened
    }

    private mutating func scalar(_ reply: RedisReply) throws(WireFault) -> Token {
        try countElement()
        return .reply(reply)
    }

    private mutating func countElement() throws(WireFault) {
        elementCount += 1
        guard elementCount <= limits.mostElements + 1 else { throw .tooLong }
    }

    private mutating func bulkToken() throws(WireFault) -> Token? {
        guard let reply = try bulk() else { return nil }
        return .reply(reply)
    }

    /// Returns the announced string, or nil if not all of its bytes have arrived.
    private mutating func bulk() throws(WireFault) -> RedisReply? {
        guard let (kind, length) = announced else { return nil }
        guard waitingBytes >= length + 2 else { return nil }
        let end = position + length
        guard buffer[end] == UInt8(ascii: "\r"), buffer[end + 1] == UInt8(ascii: "\n") else {
            throw .malformed
        }
        let bytes = Array(buffer[position..<end])
        position = end + 2
        announced = nil
        try countElement()
        switch kind {
        case UInt8(ascii: "!"): return .error(bytes)
        case UInt8(ascii: "="):
            // The string begins with three letters for its format, and a colon.
            guard bytes.count >= 4, bytes[3] == UInt8(ascii: ":") else { throw .malformed }
            return .bulk(Array(bytes[4...]))
        default: return .bulk(bytes)
        }
    }

    /// Returns the range of the next line, without its end, or nil if the line is incomplete.
    private mutating func line() throws(WireFault) -> Range<Int>? {
        var index = max(position, scanned)
        while index < buffer.count, buffer[index] != UInt8(ascii: "\n") { index += 1 }
        scanned = index
        guard index - position <= limits.longestLine else { throw .tooLong }
        guard index < buffer.count else { return nil }
        guard index > position, buffer[index - 1] == UInt8(ascii: "\r") else { throw .malformed }
        defer { position = index + 1 }
        return position..<index - 1
    }

    /// Parses a length; returns nil for -1.
    ///
    /// Streamed strings and arrays, whose length is not announced, are faults; Redis does not send them.
    private func count(_ digits: ArraySlice<UInt8>, upTo limit: Int) throws(WireFault) -> Int? {
        let number = try Self.integer(digits)
        if number == -1 { return nil }
        guard number >= 0 else { throw .malformed }
        guard number <= Int64(limit) else { throw .tooLong }
        return Int(number)
    }

    private static func scalar(_ kind: UInt8, _ text: [UInt8]) throws(WireFault) -> RedisReply {
        switch kind {
        case UInt8(ascii: "+"): return .simple(text)
        case UInt8(ascii: "-"): return .error(text)
        case UInt8(ascii: ":"): return .integer(try integer(text[...]))
        case UInt8(ascii: "("): return .bigNumber(text)
        case UInt8(ascii: "_") where text.isEmpty: return .null
        case UInt8(ascii: "#") where text == [UInt8(ascii: "t")]: return .boolean(true)
        case UInt8(ascii: "#") where text == [UInt8(ascii: "f")]: return .boolean(false)
        case UInt8(ascii: ","):
            guard let number = Double(String(decoding: text, as: UTF8.self)) else { throw .malformed }
            return .double(number)
        default: throw .malformed
        }
    }

    private static func integer(_ digits: ArraySlice<UInt8>) throws(WireFault) -> Int64 {
        guard digits.count <= 20, let number = Int64(String(decoding: digits, as: UTF8.self)) else {
            throw .malformed
        }
        return number
    }
}
