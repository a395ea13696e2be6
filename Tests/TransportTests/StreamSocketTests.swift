// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import Transport

/// Connections to servers of any protocol; HTTP servers are used here only as examples.
@Suite(.takesTurns) struct StreamSocketTests {
    private var deadline: ContinuousClock.Instant { .now + hangLimit }

    private func read(_ socket: borrowing StreamSocket) throws -> String {
        var bytes: [UInt8] = []
        while case let piece = try socket.read(upTo: 65_536, until: deadline), !piece.isEmpty {
            bytes += piece
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func ask(_ path: String, _ place: SocketPlace) throws -> String {
        let socket = try StreamSocket(to: place, until: deadline)
        try socket.write(Array("GET \(path) HTTP/1.0\r\n\r\n".utf8), until: deadline)
        return try read(socket)
    }

    private func refusal(_ place: SocketPlace) -> TransportError? {
        do throws(TransportError) {
            _ = try StreamSocket(to: place, until: deadline)
            return nil
        } catch {
            return error
        }
    }

    @Test func `bytes are sent and received without TLS`() throws {
        let server = try LoopbackServer { peer in
            _ = peer.answer("200 OK")
            return false
        }
        let answer = try ask("/", .network(host: "127.0.0.1", port: server.port))
        #expect(answer.hasPrefix("HTTP/1.1 200 OK"))
    }

    @Test func `a missing peer is an error`() throws {
        #expect(refusal(.path("/nowhere/socket"))?.cause == .noEntry)
        let closed = try ClosedPort()
        defer { withExtendedLifetime(closed) {} }
        let port = closed.number
        #expect(refusal(.network(host: "127.0.0.1", port: port))?.code == .connectionFailed)
        #expect(refusal(.network(host: "no.such.name.invalid", port: port))?.code == .connectionFailed)
    }

    @Test func `a failed name lookup ends for all threads that wait for it`() {
        let place = SocketPlace.network(host: "no.such.name.either.invalid", port: 1)
        let codes = Locked<[TransportError.Code?]>([])
        for _ in 0..<10 {
            onThreads(8) { _ in
                let code = refusal(place)?.code
                codes.withLock { $0.append(code) }
            }
        }
        #expect(codes.withLock { $0 } == Array(repeating: .connectionFailed, count: 80))
    }

    @Test func `an unresponsive address leaves time for the next`() throws {
        let server = try LoopbackServer { _ in false }
        // A socket that listens but never accepts drops new connections once its queue is full.
        let hole = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var waiting: [Int32] = []
        defer { for number in waiting + [hole] { close(number) } }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                #expect(bind(hole, name, length) == 0 && listen(hole, 0) == 0)
                #expect(getsockname(hole, name, &length) == 0)
                for _ in 0..<4 {
                    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
                    waiting.append(socket(AF_INET, kind, 0))
                    connect(waiting.last ?? -1, name, length)
                }
            }
        }
        let silent = withUnsafeBytes(of: name) { Array($0) }
        name.sin_port = server.port.bigEndian
        let good = withUnsafeBytes(of: name) { Array($0) }
        #expect(throws: Errno.timedOut) {
            _ = try StreamSocket(toOneOf: [silent], until: .now + .milliseconds(300))
        }
        _ = try StreamSocket(toOneOf: [silent, good], until: .now + .seconds(4))
        waitUntil("it is connected") { server.connections == 1 }
    }

    @Test(.enabled(if: TLSServer.isInstalled, "needs nginx-light and openssl"))
    func `over TLS, a server is trusted only with its authority and for its own names`() throws {
        let server = try TLSServer()
        let text = String(repeating: "0123456789abcdef", count: 65_536)
        try server.serve("long", Data(text.utf8))
        let security = TransportSecurity(authorityFile: server.path("authority.pem"))
        func place(_ host: String, _ security: TransportSecurity) -> SocketPlace {
            .network(host: host, port: server.port, security: security)
        }
        #expect(try ask("/long", place("127.0.0.1", security)).hasSuffix("\r\n\r\n\(text)"))
        let strangers = TransportSecurity(authorityFile: server.path("stranger.pem"))
        for (host, security) in [("127.0.0.1", strangers), ("localhost", security), ("127.0.0.1", .init())] {
            let place = place(host, security)
            let error = refusal(place)
            #expect(error?.code == .tls && error?.message.contains("certificate") == true, "\(place)")
        }
    }

    @Test(.enabled(if: TLSServer.isInstalled, "needs nginx-light and openssl"))
    func `over TLS, a server that requires a client certificate receives it`() throws {
        let server = try TLSServer(
            """
            ssl_client_certificate DIRECTORY/authority.pem; ssl_verify_client on;
            return 200 $ssl_client_s_dn;
            """
        )
        var security = TransportSecurity(authorityFile: server.path("authority.pem"))
        security.certificateFile = server.path("client.pem")
        security.keyFile = server.path("client.key")
        let place = SocketPlace.network(host: "127.0.0.1", port: server.port, security: security)
        #expect(try ask("/", place).hasSuffix("\r\n\r\nCN=client"))
    }

    @Test func `over TLS, a silent server is waited for until the deadline`() throws {
        // The server waits for a whole head.
        let server = try LoopbackServer { $0.answer() }
        let place = SocketPlace.network(host: "127.0.0.1", port: server.port, security: .init())
        let error = #expect(throws: TransportError.self) {
            _ = try StreamSocket(to: place, until: .now + .milliseconds(100))
        }
        #expect(error?.code == .timedOut)
    }

    @Test(.enabled(if: TLSServer.isInstalled, "needs nginx-light and openssl"))
    func `over TLS, a server that does not speak TLS is an error`() throws {
        let server = try TLSServer("listen 127.0.0.1:PLAIN;")
        let place = SocketPlace.network(host: "127.0.0.1", port: server.plainPort, security: .init())
        #expect(refusal(place)?.code == .tls)
    }
}
