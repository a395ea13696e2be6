// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform

/// A server on 127.0.0.1 controlled by a test: one thread accepts, and each connection has its own thread.
final class LoopbackServer: Sendable {
    /// Handles each request of a connection in turn; returns false to close the connection.
    typealias Handler = @Sendable (Peer) -> Bool

    let port: UInt16
    private let listening: Int32
    private let counts = Locked((connections: 0, open: 0, requests: [String]()))

    /// Answers with `handler` until it is stopped or the process ends.
    init(remembersRequests: Bool = true, _ handler: @escaping Handler) throws {
        let listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        self.listening = listening
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listening, address, length) == 0 && listen(listening, 64) == 0
                    && getsockname(listening, address, &length) == 0
            }
        }
        guard isListening else { throw POSIXError(.EADDRNOTAVAIL) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            while true {
                let number = accept(listening, nil, nil)
                guard number >= 0 else {
                    close(listening)
                    return
                }
                self.counts.withLock {
                    $0.connections += 1
                    $0.open += 1
                }
                Thread.detachNewThread {
                    let peer = Peer(number)
                    while let head = peer.readHead() {
                        if remembersRequests { self.counts.withLock { $0.requests.append(head) } }
                        if !handler(peer) { break }
                    }
                    self.counts.withLock { $0.open -= 1 }
                }
            }
        }
    }

    /// Refuses new connections.
    func stop() {
        // Wakes the accepting thread, which closes the socket.
        shutdown(listening, Int32(SHUT_RDWR))
    }

    func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }
    var connections: Int { counts.withLock { $0.connections } }
    /// The number of connections that neither side has closed.
    var openConnections: Int { counts.withLock { $0.open } }
    /// The heads of the requests so far.
    var requests: [String] { counts.withLock { $0.requests } }
}

/// The server's side of a connection.
final class Peer: Sendable {
    private let number: Int32
    private let present = Locked("")

    init(_ number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// The head of the current request.
    var head: String { present.withLock { $0 } }
    var path: String { head.split(separator: " ").dropFirst().first.map(String.init) ?? "" }

    /// Returns the value of a request field.
    func field(_ name: String) -> String? {
        for line in head.split(separator: "\r\n") where line.lowercased().hasPrefix(name.lowercased() + ":") {
            return line.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
        }
        return nil
    }

    /// Reads a head up to the empty line; returns nil if the client has closed.
    func readHead() -> String? {
        var bytes: [UInt8] = []
        while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) {
            var byte: UInt8 = 0
            guard recv(number, &byte, 1, 0) == 1 else { return nil }
            bytes.append(byte)
        }
        let text = String(decoding: bytes, as: UTF8.self)
        present.withLock { $0 = text }
        return text
    }

    func read(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let step = bytes[filled...].withUnsafeMutableBytes { recv(number, $0.baseAddress, $0.count, 0) }
            if step <= 0 { break }
            filled += step
        }
        return Array(bytes.prefix(filled))
    }

    /// Sends bytes; returns false if the client has closed.
    @discardableResult
    func send(_ bytes: some Collection<UInt8>) -> Bool {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let step = bytes[sent...].withUnsafeBytes {
                Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if step <= 0 { return false }
            sent += step
        }
        return true
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(text.utf8) }

    /// Sends a whole response.
    @discardableResult
    func answer(_ status: String = "200 OK", _ fields: [String] = [], _ body: [UInt8] = []) -> Bool {
        let lines = ["HTTP/1.1 \(status)"] + fields + ["Content-Length: \(body.count)"]
        return send(lines.joined(separator: "\r\n") + "\r\n\r\n") && send(body)
    }

    /// Relays bytes in both directions until one side closes.
    func relay(to port: UInt16) {
        guard let other = try? connectedSocket(port) else { return }
        let pass: @Sendable (Int32, Int32) -> Void = { from, to in
            var bytes = [UInt8](repeating: 0, count: 65536)
            while true {
                let count = recv(from, &bytes, bytes.count, 0)
                guard count > 0, Glibc.send(to, bytes, count, Int32(MSG_NOSIGNAL)) == count else { break }
            }
            shutdown(to, Int32(SHUT_RDWR))
            shutdown(from, Int32(SHUT_RDWR))
        }
        let back = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [number] in
            pass(other, number)
            back.signal()
        }
        pass(number, other)
        back.wait()
        close(other)
    }

    /// Waits until the client has closed.
    func waitForEnd() {
        var byte: UInt8 = 0
        while recv(number, &byte, 1, 0) > 0 {}
    }
}

/// Returns a socket that is connected to 127.0.0.1.
private func connectedSocket(_ port: UInt16) throws -> Int32 {
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let isConnected = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
    guard isConnected else {
        close(number)
        throw POSIXError(.ECONNREFUSED)
    }
    return number
}
