// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform

/// An HTTP server on 127.0.0.1, whose answers a test controls; each connection has one request.
public final class WebServer: Sendable {
    /// A request to the server.
    public struct Request: Sendable {
        /// The method, as sent.
        public var method = ""
        /// The path, including the query.
        public var path = ""
        /// The header fields.
        public var fields: [(name: String, value: String)] = []
        /// The body, whose length Content-Length states.
        public var body = Data()

        /// Returns the value of a field; the case of its name does not matter.
        public subscript(name: String) -> String? {
            fields.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// An answer of the server.
    public struct Answer: Sendable {
        /// The status code.
        public var status = 200
        /// The header lines.
        public var fields: [String] = []
        /// The body, which is sent completely unless ``cut`` is set.
        public var body = Data()
        /// The number of bytes of the body after which the connection is closed; nil to send all.
        public var cut: Int?
        /// The raw head and body to send; nil to create them from the other properties.
        public var raw: Data?

        /// Creates an answer with these properties.
        public init(_ status: Int = 200, _ fields: [String] = [], _ body: Data = Data(), cut: Int? = nil) {
            (self.status, self.fields, self.body, self.cut) = (status, fields, body, cut)
        }
    }

    /// The port of the server.
    public let port: UInt16
    private let listening: Int32
    private let log = Locked<[Request]>([])
    private let isStopped = Locked(false)

    /// Starts a server that answers each request with `answer`, which may block, until ``stop()``.
    public init(_ answer: @escaping @Sendable (Request) -> Answer) throws {
        let listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listening, address, length) == 0 && listen(listening, 64) == 0
                    && getsockname(listening, address, &length) == 0
            }
        }
        guard isListening else { throw POSIXError(.EADDRNOTAVAIL) }
        self.listening = listening
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            while true {
                let number = accept(listening, nil, nil)
                guard number >= 0 else { break }
                Thread.detachNewThread {
                    self.serve(number, answer)
                    close(number)
                }
            }
            close(listening)
        }
    }

    /// Stops the server; it then refuses connections.
    public func stop() {
        let isFirst = isStopped.withLock { isStopped in
            defer { isStopped = true }
            return !isStopped
        }
        // This wakes the accepting thread, which closes the socket; closing it here could close a reused descriptor
        // instead.
        if isFirst { shutdown(listening, Int32(SHUT_RDWR)) }
    }

    /// Returns the URL of a path.
    public func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// The requests so far.
    public var requests: [Request] { log.withLock { $0 } }

    private func serve(_ number: Int32, _ answer: @Sendable (Request) -> Answer) {
        var bytes = Data()
        let end = Data("\r\n\r\n".utf8)
        while bytes.range(of: end) == nil {
            guard let more = Self.receive(number) else { return }
            bytes += more
        }
        guard let range = bytes.range(of: end) else { return }
        let lines = String(decoding: bytes[..<range.lowerBound], as: UTF8.self).components(
            separatedBy: "\r\n"
        )
        let words = lines[0].components(separatedBy: " ")
        var request = Request()
        (request.method, request.path) = (words[0], words.count > 1 ? words[1] : "")
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            request.fields.append((String(line[..<colon]), value))
        }
        request.body = Data(bytes[range.upperBound...])
        let length = request["Content-Length"].flatMap { Int($0) } ?? 0
        while request.body.count < length, let more = Self.receive(number) { request.body += more }
        log.withLock { $0.append(request) }
        let reply = answer(request)
        if let raw = reply.raw { return Self.send(raw, number) }
        var head = "HTTP/1.1 \(reply.status) Status\r\nConnection: close\r\n"
        if !reply.fields.contains(where: { $0.lowercased().hasPrefix("content-length:") }),
            reply.status != 304
        {
            head += "Content-Length: \(reply.body.count)\r\n"
        }
        head += reply.fields.map { $0 + "\r\n" }.joined() + "\r\n"
        let body = request.method == "HEAD" ? Data() : reply.body.prefix(reply.cut ?? reply.body.count)
        Self.send(Data(head.utf8) + body, number)
    }

    /// Returns the received bytes, or nil at the end of the input.
    private static func receive(_ number: Int32) -> Data? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(number, &bytes, bytes.count, 0)
        return count > 0 ? Data(bytes[..<count]) : nil
    }

    private static func send(_ data: Data, _ number: Int32) {
        let bytes = [UInt8](data)
        var sent = 0
        while sent < bytes.count {
            let step = bytes.withUnsafeBytes {
                Glibc.send(
                    number,
                    $0.baseAddress?.advanced(by: sent),
                    bytes.count - sent,
                    Int32(MSG_NOSIGNAL)
                )
            }
            if step <= 0 { return }
            sent += step
        }
    }
}

extension WebServer.Answer {
    /// Returns an answer with exactly these header lines and this body; the connection is closed after it.
    public static func raw(_ lines: [String], _ body: Data = Data()) -> WebServer.Answer {
        var answer = WebServer.Answer()
        answer.raw = Data((lines + ["Connection: close", "", ""]).joined(separator: "\r\n").utf8) + body
        return answer
    }

    /// Returns the answer of a server that supports conditions and ranges, for a resource with an entity tag.
    public static func resource(
        _ request: WebServer.Request,
        _ body: Data,
        tag: String,
        _ fields: [String] = []
    ) -> WebServer.Answer {
        let fields = fields + ["ETag: \"\(tag)\""]
        if request["If-None-Match"]?.contains("\"\(tag)\"") ?? false { return WebServer.Answer(304, fields) }
        let isSame = request["If-Range"].map { $0 == "\"\(tag)\"" } ?? true
        guard isSame, let range = request["Range"], range.hasPrefix("bytes="),
            let first = Int(range.dropFirst(6).prefix { $0 != "-" })
        else { return WebServer.Answer(200, fields, body) }
        guard first < body.count else {
            return WebServer.Answer(416, fields + ["Content-Range: bytes */\(body.count)"])
        }
        let last = range.split(separator: "-", omittingEmptySubsequences: false).last.flatMap { Int($0) }
        let end = min(body.count, (last ?? body.count - 1) + 1)
        let place = "Content-Range: bytes \(first)-\(end - 1)/\(body.count)"
        return WebServer.Answer(206, fields + [place], body.subdata(in: first..<end))
    }
}
