// SPDX-License-Identifier: Apache-2.0

import TestSupport

/// A server's response for a number: a valid response, a redirect to another number, or one of these with mistakes.
///
/// It depends only on the number and its position in a chain of redirects, so server and client can both generate it.
/// Responses with mistakes come from a separate server: bytes after a body may be treated as the response to its next
/// request.
struct AnyResponse {
    /// The base URLs of the valid and of the invalid responses, each with a trailing slash.
    struct Places {
        var good: String
        var bad: String
    }

    enum Ending {
        case kept
        case closed
        /// The last bytes are repeated until the client closes.
        case endless
    }

    /// The result that the client must get, or nil if any response or error is allowed.
    struct Outcome {
        var status: Int
        var body: [UInt8]
    }

    /// The maximum number of redirects in a row; the next response is not a redirect.
    static let mostRedirects = 3

    private(set) var bytes: [UInt8] = []
    private(set) var ending = Ending.kept
    private(set) var outcome: Outcome?
    let url: String
    private var generator: SeededGenerator

    init(_ number: UInt64, redirects: Int = 0, isHead: Bool, _ places: Places) {
        generator = SeededGenerator(seed: number &* 31 &+ UInt64(redirects))
        let kind = Int.random(in: 0..<100, using: &generator)
        let isBad = kind >= 60
        url = (isBad ? places.bad : places.good) + "\(number)-\(redirects)"
        for _ in 0..<(oneOf(4) ? random(3) : 0) { add(["100 Continue", "103 Early Hints"], [field()]) }
        if kind % 3 == 0, redirects < Self.mostRedirects {
            let number = UInt64(random(1 << 40))
            let next = AnyResponse(number, redirects: redirects + 1, isHead: isHead, places)
            // A mistake in an absolute URL could lead to any host.
            let location = isBad ? "\(number)-\(redirects + 1)" : next.url
            addResponse(302, ["Location: \(location)"], isHead: isHead)
            outcome = next.outcome
        } else {
            let status = [200, 203, 206, 404, 410, 416, 500, 503][random(8)]
            let body = addResponse(status, [], isHead: isHead)
            outcome = Outcome(status: status, body: body)
        }
        guard isBad else { return }
        outcome = nil
        ending = oneOf(30) ? .endless : .closed
        for _ in 0...random(4) { spoil() }
    }

    private mutating func random(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
    private mutating func oneOf(_ count: Int) -> Bool { random(count) == 0 }

    // MARK: Valid responses

    private mutating func add(_ statuses: [String], _ fields: [String]) {
        let lines = ["HTTP/1.1 " + statuses[random(statuses.count)]] + fields + ["", ""]
        bytes += Array(lines.joined(separator: "\r\n").utf8)
    }

    private mutating func field() -> String {
        let names = [
            "X-A", "ETag", "Date", "Cache-Control", "Set-Cookie", "Vary", "Content-Range", "Age", "Link",
            "Strict-Transport-Security", "Alt-Svc", "Retry-After", "Last-Modified",
        ]
        var values = [
            "", "a", "\"b\"", "max-age=10, public", "bytes 0-9/10", "a=b; path=/", "*", "ä", "a:b:c",
        ]
        values.append(String(repeating: "x", count: random(3000)))
        var text = "\(names[random(names.count)]): \(values[random(values.count)])"
        if oneOf(5) { text += "\r\n" + [" ", "\t", "  "][random(3)] + "folded \(random(1000))" }
        return text
    }

    /// Appends a response and returns the body that the client must get.
    @discardableResult
    private mutating func addResponse(_ status: Int, _ fields: [String], isHead: Bool) -> [UInt8] {
        let count = oneOf(10) ? random(100_000) : random(300)
        let body = SeededGenerator.bytes(count, seed: generator.next())
        var fields = fields + (0..<random(8)).map { _ in field() }
        var sent = body
        switch random(3) {
        case 0: fields.append("Content-Length: \(count)")
        case 1:
            fields.append("Transfer-Encoding: chunked")
            sent = chunked(body)
        default:
            fields.append("Connection: close")
            ending = .closed
        }
        fields.shuffle(using: &generator)
        add(["\(status) Status"], fields)
        if isHead { return [] }
        bytes += sent
        return body
    }

    private mutating func chunked(_ body: [UInt8]) -> [UInt8] {
        var (sent, rest) = ([UInt8](), body[...])
        while !rest.isEmpty {
            let piece = rest.prefix(1 + random(2000))
            rest = rest.dropFirst(piece.count)
            var length = String(piece.count, radix: 16, uppercase: oneOf(2))
            if oneOf(5) { length = "000" + length }
            if oneOf(5) { length += ";name=value" }
            sent += Array("\(length)\r\n".utf8) + piece + Array("\r\n".utf8)
        }
        return sent + Array("0\r\n\(oneOf(4) ? "X-Last: a\r\n" : "")\r\n".utf8)
    }

    // MARK: Mistakes

    private static let pieces: [[UInt8]] =
        [
            "\r\n ", "\r\n\t", "\n", "\r", "\r\n\r\n", "\0", ":", " ", "HTTP/1.1 200 OK\r\n",
            "HTTP/2 200\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
            "\r\nContent-Length: 18446744073709551616\r\n", "\r\nContent-Length: -1\r\n",
            "\r\nContent-Length: 5\r\n",
            "\r\nContent-Length: 9223372036854775807\r\n", "\r\nTransfer-Encoding: chunked\r\n",
            "\r\nTransfer-Encoding: gzip, chunked\r\n", "\r\nContent-Encoding: gzip\r\n",
            "\r\nContent-Encoding: deflate, gzip, deflate, gzip, deflate, gzip\r\n", "\r\nLocation: \r\n",
            "\r\nLocation: http://[\r\n", "\r\nLocation: ?\r\n",
            "\r\nContent-Range: bytes 5-18446744073709551615/*\r\n",
            "\r\nConnection: close\r\n", "\r\nWWW-Authenticate: Basic\r\n", "fffffffffffffffff\r\n",
            "0\r\n\r\n", "-5\r\n",
        ].map { Array($0.utf8) } + [
            [UInt8](repeating: 0x78, count: 70_000), [0xff, 0xfe, 0x80], [0x1f, 0x8b, 8, 0],
        ]

    private mutating func spoil() {
        let place = random(bytes.count + 1)
        let end = min(bytes.count, place + random(60))
        switch random(8) {
        case 0: bytes.removeSubrange(place...)
        case 1: bytes.removeSubrange(place..<end)
        case 2: bytes.insert(contentsOf: bytes[place..<end], at: place)
        case 3:
            // At the start of the first field.
            let line = bytes.firstIndex(of: 0x0A).map { $0 + 1 } ?? 0
            bytes.insert(
                contentsOf: Array([" folded\r\n", "\t\r\n", " a: b\r\n c\r\n"][random(3)].utf8),
                at: line
            )
        case 4 where place < bytes.count: bytes[place] = UInt8(random(256))
        default: bytes.insert(contentsOf: Self.pieces[random(Self.pieces.count)], at: place)
        }
    }
}
