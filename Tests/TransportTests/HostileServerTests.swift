// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import Transport

/// Servers that lie, stop early or never end: one error each.
@Suite(.takesTurns) struct HostileServerTests {
    let transport = Transport()

    /// Expects `code` from a server that answers each request with `text` and closes the connection.
    private func expect(_ code: TransportError.Code, from text: String) async throws {
        let server = try LoopbackServer { peer in
            peer.send(text)
            return false
        }
        await expectFailure(code, transport, TransportRequest(server.url()))
    }

    @Test(arguments: [" folded", "\tfolded", " ", " a: b\r\n c: d"])
    func `a head that begins with a folded line is harmless after another response`(_ line: String)
        async throws
    {
        // libcurl 7.83.0 to 8.1.0 would continue a field of the previous response, which it has freed.
        let long = (0..<40).map { "X-\($0): \(String(repeating: "x", count: 10 + $0 * 40))" }
        let server = try LoopbackServer { peer in
            if peer.path == "/whole" { return peer.answer("200 OK", long, [1]) }
            return peer.send("HTTP/1.1 200 OK\r\n\(line)\r\nContent-Length: 1\r\n\r\nx")
        }
        let transport = Transport(mostTransfers: 1)
        var request = TransportRequest(server.url())
        for path in Array(repeating: ["/whole", "/folded", "/whole"], count: 50).joined() {
            request.url = server.url(path)
            do throws(TransportError) {
                let response = try await transport.perform(request)
                #expect(response.body == (path == "/whole" ? Data([1]) : Data("x".utf8)))
            } catch {
                #expect(path != "/whole" && error.code == .protocolViolation, "\(error)")
            }
        }
    }

    @Test func `a body shorter than its length is an error`() async throws {
        try await expect(.truncated, from: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
    }

    @Test func `a chunked body without its last chunk is an error`() async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        try await expect(.truncated, from: head + "3\r\nabc\r\n")
    }

    @Test func `a connection closed without a response is an error`() async throws {
        try await expect(.truncated, from: "")
    }

    @Test func `a response that is not HTTP is an error`() async throws {
        let server = try LoopbackServer { peer in
            peer.send("SSH-2.0-OpenSSH\r\n\r\n")
            return false
        }
        await expectFailure(.protocolViolation, transport, TransportRequest(server.url()))
    }

    @Test func `bytes beyond Content-Length are not part of the body`() async throws {
        let server = try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef")
            return false
        }
        let response = try await transport.perform(TransportRequest(server.url()))
        #expect(response.body == Data("abc".utf8))
    }

    @Test func `a list of different lengths is an error`() async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: "
        try await expect(.protocolViolation, from: head + "3, 8\r\n\r\nabcdefgh")
        // Some versions of libcurl accept no list at all.
        let server = try LoopbackServer { peer in
            peer.send(head + "3, 3\r\n\r\nabc")
            return false
        }
        let response = try? await transport.perform(TransportRequest(server.url()))
        #expect(response?.contentLength ?? 3 == 3)
    }

    @Test func `a head that never ends is an error`() async throws {
        let server = try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\n")
            while peer.send("X-Flood: \(String(repeating: "x", count: 1000))\r\n") {}
            return false
        }
        var request = TransportRequest(server.url())
        request.mostHeadBytes = 64 * 1024
        await expectFailure(.headTooLarge, transport, request)
    }

    @Test func `endless interim responses are an error`() async throws {
        let server = try LoopbackServer { peer in
            while peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") {}
            return false
        }
        var request = TransportRequest(server.url())
        request.mostHeadBytes = 64 * 1024
        await expectFailure(.headTooLarge, transport, request)
    }

    @Test func `a body may be as long as the limit and no longer, with or without a length`() async throws {
        let server = try LoopbackServer { peer in
            let piece = [UInt8](repeating: 1, count: 1000)
            if peer.path == "/announced" { return peer.answer("200 OK", [], piece) }
            peer.send("HTTP/1.1 200 OK\r\n\r\n")
            while peer.send(piece) {}
            return false
        }
        var request = TransportRequest(server.url("/announced"))
        request.mostBytes = 1000
        #expect(try await transport.perform(request).received == 1000)
        request.mostBytes = 999
        await expectFailure(.tooLarge, transport, request)
        request.url = server.url("/endless")
        await expectFailure(.tooLarge, transport, request)
    }

    @Test func `a refused connection is an error`() async throws {
        let closed = try ClosedPort()
        defer { withExtendedLifetime(closed) {} }
        let request = TransportRequest("http://127.0.0.1:\(closed.number)/")
        await expectFailure(.connectionFailed, transport, request)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc", "hello",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n",
    ])
    func `a response that violates HTTP is an error`(_ text: String) async throws {
        try await expect(.protocolViolation, from: text)
    }

    @Test func `an unknown transfer coding is ignored, as browsers do`() async throws {
        let server = try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: nonsense\r\n\r\nabc")
            return false
        }
        let response = try await transport.perform(TransportRequest(server.url()))
        #expect(response.body == Data("abc".utf8))
    }

    @Test func `a connection that the server has closed is replaced`() async throws {
        // The server promises to keep the connection open, and closes it.
        let server = try LoopbackServer { peer in
            peer.answer("200 OK", ["Connection: keep-alive"], [1])
            return false
        }
        for number in 1...5 {
            let response = try await transport.perform(TransportRequest(server.url()))
            #expect(response.body == Data([1]))
            #expect(server.connections == number)
            await waitUntil("it is closed") { server.openConnections == 0 }
        }
    }

    @Test func `failures leave no connection open`() async throws {
        let server = try LoopbackServer { peer in
            switch peer.path {
            case "/silent":
                peer.waitForEnd()
                return false
            case "/short": peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            case "/wrong": peer.send("hello")
            default: return peer.answer("200 OK", [], [UInt8](repeating: 0, count: 1000))
            }
            return false
        }
        for _ in 0..<20 {
            for path in ["/silent", "/short", "/wrong", "/long"] {
                var request = TransportRequest(server.url(path))
                request.timeLimit = path == "/silent" ? .milliseconds(5) : nil
                request.mostBytes = 999
                await #expect(throws: TransportError.self) { try await transport.perform(request) }
            }
        }
        transport.closeIdleConnections()
        await waitUntil("all are closed") { server.openConnections == 0 }
    }
}
