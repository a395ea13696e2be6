// SPDX-License-Identifier: Apache-2.0

/// Decodes replies from Redis, in version 2 of its protocol, from pieces of any size.
///
/// After a fault nothing more can be decoded: the caller must close the connection. Memory is allocated only for bytes
/// that have arrived, within the limits, never for announced lengths. The work is proportional to the number of bytes,
/// however they are split.
struct RedisDecoder: Sendable {
    /// The limits of a reply.
    struct Limits: Sendable {
        /// The maximum length of a string in bytes, and of all strings of an array together; it limits the values that can
        /// be read.
        var longestBulk = 512 << 20
        /// The maximum length of a line in bytes; numbers and errors are short.
        var longestLine = 16 << 10
        /// The maximum number of elements of an array.
        var mostElements = 4096
    }

    private let limits: Limits
    private var buffer: [UInt8] = []
    private var position = 0
    /// The index before which no line ends.
    private var scanned = 0
    /// An incomplete array.
    private var array: (missing: Int, elements: [RedisReply])?
    /// The length of a string whose head was read.
    private var announced: Int?
    /// The length of all strings of the present reply.
    private var length = 0

    init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Appends received bytes.
    mutating func append(_ bytes: some Collection<UInt8>) {
        // Decoded bytes are removed once they make up more than half of the buffer.
        if position > 4096, position * 2 > buffer.count {
            buffer.removeFirst(position)
            scanned = max(0, scanned - position)
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The number of received bytes that are not yet decoded.
    var waitingBytes: Int { buffer.count - position }

    /// Returns the next complete reply, or nil if more bytes are needed.
    mutating func next() throws(WireFault) -> RedisReply? {
        while true {
            guard let token = try token() else { return nil }
            switch token {
            case .head: continue
            case .reply(let reply):
                guard array != nil else { return ended(reply) }
                array?.elements.append(reply)
                array?.missing -= 1
                if let array, array.missing == 0 { return ended(.array(array.elements)) }
            }
        }
    }

    private mutating func ended(_ reply: RedisReply) -> RedisReply {
        (array, length) = (nil, 0)
        return reply
    }

    // MARK: Tokens

    private enum Token {
        /// The head of a string or of an array.
        case head
        case reply(RedisReply)
    }

    private mutating func token() throws(WireFault) -> Token? {
        if let announced { return try string(of: announced) }
        guard let line = try line() else { return nil }
        guard let kind = buffer[line].first else { throw .malformed }
        let text = buffer[line.dropFirst()]
        switch kind {
        case UInt8(ascii: "$"):
            guard let length = try count(text, upTo: .max) else { return .reply(.null) }
            guard length <= limits.longestBulk - self.length else { throw .longValue }
            self.length += length
            announced = length
            return .head
        case UInt8(ascii: "*"):
            // No command that is sent has a reply with nested arrays.
            guard array == nil else { throw .malformed }
            guard let count = try count(text, upTo: limits.mostElements) else { return .reply(.null) }
            if count == 0 { return .reply(.array([])) }
            array = (count, [])
            return .head
        case UInt8(ascii: "+"): return .reply(.simple(Array(text)))
        case UInt8(ascii: "-"): return .reply(.error(Array(text)))
        case UInt8(ascii: ":"): return .reply(.integer(try Self.integer(text)))
        default: throw .malformed
        }
    }

    /// Returns a string, or nil if not all of its bytes have arrived.
    private mutating func string(of length: Int) throws(WireFault) -> Token? {
        guard waitingBytes >= length + 2 else { return nil }
        let end = position + length
        guard buffer[end] == UInt8(ascii: "\r"), buffer[end + 1] == UInt8(ascii: "\n") else {
            throw .malformed
        }
        let bytes = Array(buffer[position..<end])
        position = end + 2
        announced = nil
        return .reply(.bulk(bytes))
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
    private func count(_ digits: ArraySlice<UInt8>, upTo limit: Int) throws(WireFault) -> Int? {
        let number = try Self.integer(digits)
        if number == -1 { return nil }
        guard number >= 0 else { throw .malformed }
        guard number <= Int64(limit) else { throw .tooLong }
        return Int(number)
    }

    private static func integer(_ digits: ArraySlice<UInt8>) throws(WireFault) -> Int64 {
        guard digits.count <= 20, let number = Int64(String(decoding: digits, as: UTF8.self)) else {
            throw .malformed
        }
        return number
    }
}
