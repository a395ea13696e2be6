// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform

/// A server of HTTP on 127.0.0.1 that answers as a test wants, one request a connection.
public final class WebServer: Sendable {
    /// What it is asked.
    public struct Request: Sendable {
        /// As it was sent.
        public var method = ""
        /// With the query.
        public var path = ""
        /// All lines of the head but the first.
        public var fields: [(name: String, value: String)] = []
        /// As long as Content-Length says.
        public var body = Data()

        /// The value of a field, whatever its case.
        public subscript(name: String) -> String? {
            fields.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// What it says.
    public struct Answer: Sendable {
        /// Of the first line.
        public var status = 200
        /// Lines of the head.
        public var fields: [String] = []
        /// Sent whole, unless ``cut`` says otherwise.
        public var body = Data()
        /// Of the body so many bytes are sent, and then the connection is closed; nil: all.
        public var cut: Int?
        /// Head and body as they are sent, in the place of everything above; nil: they are made of that.
        public var raw: Data?

        /// All parameters are what the properties say.
        public init(_ status: Int = 200, _ fields: [String] = [], _ body: Data = Data(), cut: Int? = nil) {
            (self.status, self.fields, self.body, self.cut) = (status, fields, body, cut)
        }
    }

    /// Where it listens.
    public let port: UInt16
    private let listening: Int32
    private let log = Locked<[Request]>([])
    private let isStopped = Locked(false)

    /// Answers with `answer`, which may block, until it is stopped.
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

    /// Refuses connections from now on.
    public func stop() {
        let isFirst = isStopped.withLock { isStopped in
            defer { isStopped = true }
            return !isStopped
        }
        // Wakes the thread that accepts, which closes it: later the number may be another file's.
        if isFirst { shutdown(listening, Int32(SHUT_RDWR)) }
    }

    /// Where something is there.
    public func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// What it was asked so far.
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

    /// Nil at the end.
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
    /// A head of these lines and a body, byte by byte; then the connection is closed.
    public static func raw(_ lines: [String], _ body: Data = Data()) -> WebServer.Answer {
        var answer = WebServer.Answer()
        answer.raw = Data((lines + ["Connection: close", "", ""]).joined(separator: "\r\n").utf8) + body
        return answer
    }

    /// A resource with a tag, as a server that knows conditions and ranges gives it.
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
