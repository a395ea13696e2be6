// SPDX-License-Identifier: Apache-2.0

/// Reads answers of Redis from pieces of any size; versions 2 and 3 of its protocol.
///
/// After a fault nothing more can be read: the connection must be closed. It takes no memory for what was
/// only announced: at most the bytes that arrived, and what its limits allow. The work is proportional to the
/// bytes, however they are cut.
package struct RedisDecoder: Sendable {
    /// What a server may send.
    package struct Limits: Sendable {
        /// Bytes of one string: the longest value that is asked for.
        package var longestBulk = 512 << 20
        /// Bytes of a line; those of numbers and errors are short.
        package var longestLine = 16 << 10
        /// Replies within one reply, however deep.
        package var mostElements = 4096
        /// Arrays within arrays.
        package var deepest = 8

        package init() {}
    }

    /// An array that isn't complete.
    private struct Frame {
        let kind: UInt8
        var missing: Int
        var elements: [RedisReply] = []
    }

    private let limits: Limits
    private var buffer: [UInt8] = []
    private var position = 0
    /// No end of a line is before it.
    private var scanned = 0
    private var frames: [Frame] = []
    private var elementCount = 0
    /// A string whose head was read: its kind, and how long it is.
    private var announced: (kind: UInt8, length: Int)?

    package init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Takes bytes as they arrive.
    package mutating func append(_ bytes: some Collection<UInt8>) {
        // What was read goes first, once that is most of it.
        if position > 4096, position * 2 > buffer.count {
            buffer.removeFirst(position)
            scanned = max(0, scanned - position)
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Bytes that arrived and were not read yet.
    package var waitingBytes: Int { buffer.count - position }

    /// The next answer that is complete; nil: more bytes are needed.
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
        /// An array has begun, which is on the stack.
        case opened
    }

    /// Puts a reply where it belongs; the outermost one if it is complete by that.
    private mutating func finished(by token: Token) -> RedisReply? {
        if case .reply(let reply) = token {
            guard !frames.isEmpty else { return reply }
            frames[frames.count - 1].elements.append(reply)
            frames[frames.count - 1].missing -= 1
        }
        while let frame = frames.last, frame.missing == 0 {
            frames.removeLast()
            // Attributes say something about the reply that follows, which nobody asked for.
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
            // Version 2 has nothing as a string of length -1.
            guard let length = try count(text, upTo: limits.longestBulk) else { return try scalar(.null) }
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

    /// The string that was announced, once all its bytes are there.
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
            // Three letters that say what it is, and a colon.
            guard bytes.count >= 4, bytes[3] == UInt8(ascii: ":") else { throw .malformed }
            return .bulk(Array(bytes[4...]))
        default: return .bulk(bytes)
        }
    }

    /// Where the next line is, without its end; nil: not all of it has arrived.
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

    /// A length; nil for -1.
    ///
    /// Streams of unknown length, which Redis does not send, are faults.
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
