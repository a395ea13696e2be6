// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import Transport

/// Requests and responses with servers that behave correctly.
@Suite(.takesTurns) struct TransportTests {
    let transport = Transport()

    @Test func `the head and the body are returned in memory`() async throws {
        let fields = ["ETag: \"x\"", "A: 1", "a: 2"]
        let server = try LoopbackServer { $0.answer("200 OK", fields, Array("hello".utf8)) }
        let response = try await transport.perform(TransportRequest(server.url("/a?b")))
        #expect(response.status == 200)
        #expect(response.version == "1.1")
        #expect(response.body == Data("hello".utf8))
        #expect(response.received == 5)
        #expect(response.values("etag") == ["\"x\""])
        #expect(response.values("A") == ["1", "2"])
        #expect(server.requests.first?.hasPrefix("GET /a?b HTTP/1.1\r\n") == true)
    }

    @Test func `a blocking caller gets the response`() throws {
        let server = try LoopbackServer { $0.answer("404 Not Found", [], [1, 2, 3]) }
        let response = try blocking(transport, TransportRequest(server.url()))
        #expect(response.status == 404)
        #expect(response.body == Data([1, 2, 3]))
    }

    @Test func `a body is written at the file's current offset`() async throws {
        let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let server = try LoopbackServer { $0.answer("200 OK", [], body) }
        let directory = try TemporaryDirectory()
        let path = directory.path + "/body"
        let file = open(path, O_CREAT | O_RDWR, 0o600)
        defer { close(file) }
        #expect(write(file, "ab", 2) == 2)
        var request = TransportRequest(server.url())
        request.output = .descriptor(file)
        let response = try await transport.perform(request)
        #expect(response.received == 3_000_000)
        #expect(response.body.isEmpty)
        #expect(FileManager.default.contents(atPath: path) == Data("ab".utf8) + Data(body))
    }

    @Test func `a request body is sent with its length`() async throws {
        let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let server = try LoopbackServer { peer in
            let length = peer.field("Content-Length").flatMap { Int($0) }
            return peer.answer("201 Created", [], length.map(peer.read) ?? [])
        }
        for body in [body, []] {
            var request = TransportRequest(server.url(), method: "PUT")
            request.body = Data(body)
            let response = try await transport.perform(request)
            #expect(response.status == 201)
            #expect(response.body == Data(body))
        }
        #expect(server.requests.allSatisfy { $0.hasPrefix("PUT / ") && !$0.contains("Expect") })
    }

    @Test func `HEAD has no body, whatever its Content-Length`() async throws {
        let server = try LoopbackServer { $0.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n") }
        let response = try await transport.perform(TransportRequest(server.url(), method: "HEAD"))
        #expect(response.values("content-length") == ["1000"])
        #expect(response.received == 0)
    }

    @Test func `successive requests use the same connection`() async throws {
        let server = try LoopbackServer { $0.answer() }
        for number in 0..<5 {
            let response = try await transport.perform(TransportRequest(server.url()))
            #expect(response.connections == (number == 0 ? 1 : 0))
        }
        #expect(server.connections == 1)
    }

    @Test(arguments: [("GET", 2), ("PUT", 2), ("DELETE", 2), ("POST", 1), ("PATCH", 1), ("PURGE", 1)])
    func `only idempotent requests are sent again if a kept connection breaks`(
        _ method: String,
        _ most: Int
    ) async throws {
        let answered = Locked(0)
        let server = try LoopbackServer { peer in
            if let length = peer.field("Content-Length").flatMap({ Int($0) }) { _ = peer.read(length) }
            guard peer.path == "/once" else { return peer.answer() }
            answered.withLock { $0 += 1 }
            // The request was carried out, but gets no response.
            return false
        }
        let transport = Transport(mostTransfers: 1)
        #expect(try await transport.perform(TransportRequest(server.url())).status == 200)
        var request = TransportRequest(server.url("/once"), method: method)
        if most == 1 || method == "PUT" { request.body = Data([1, 2, 3]) }
        await expectFailure(.truncated, transport, request)
        #expect(answered.withLock { $0 } == most)
        // The next request makes a new connection, which the one after it reuses.
        request.url = server.url()
        #expect(try await transport.perform(request).connections == 1)
        #expect(try await transport.perform(TransportRequest(server.url())).connections == 0)
    }

    @Test func `a request that was sent before its connection broke counts as sent`() async throws {
        let started = Locked<LoopbackServer?>(nil)
        let server = try LoopbackServer { peer in
            guard peer.path == "/once" else { return peer.answer() }
            _ = peer.read(3)
            // The server refuses libcurl's second connection.
            started.withLock { $0?.stop() }
            return false
        }
        started.withLock { $0 = server }
        let transport = Transport(mostTransfers: 1)
        #expect(try await transport.perform(TransportRequest(server.url())).status == 200)
        var request = TransportRequest(server.url("/once"), method: "PUT")
        request.body = Data([1, 2, 3])
        let error = await #expect(throws: TransportError.self) { try await transport.perform(request) }
        #expect(error?.code == .connectionFailed && error?.isBeforeRequest == false)
        let other = await #expect(throws: TransportError.self) { try await transport.perform(request) }
        #expect(other?.code == .connectionFailed && other?.isBeforeRequest == true)
    }

    @Test func `child processes inherit no connection`() async throws {
        let server = try LoopbackServer { $0.answer() }
        _ = try await transport.perform(TransportRequest(server.url()))
        let connections = (0..<Int32(1024)).filter { number in
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(number, $0, &length) }
            }
            return code == 0 && address.sin_family == sa_family_t(AF_INET)
                && UInt16(bigEndian: address.sin_port) == server.port
        }
        #expect(!connections.isEmpty)
        #expect(connections.allSatisfy { fcntl($0, F_GETFD) & FD_CLOEXEC != 0 })
    }

    @Test func `the disposition decides whether a body is discarded or stopped`() async throws {
        let server = try LoopbackServer { $0.answer("500 Error", [], [1, 2, 3]) }
        var request = TransportRequest(server.url())
        request.disposition = { $0.status == 200 ? .keep : .discard }
        var response = try await transport.perform(request)
        #expect(response.body.isEmpty && response.received == 3)
        request.disposition = { _ in .stop }
        response = try await transport.perform(request)
        #expect(response.status == 500 && response.received == 0)
    }

    @Test func `invalid fields, URLs and methods are rejected`() async throws {
        for field in [HeaderField("A", "b\r\nC: d"), HeaderField("A\n", "b"), HeaderField("", "b")] {
            var request = TransportRequest("http://127.0.0.1:1/")
            request.fields = [field]
            await expectFailure(.invalidRequest, transport, request)
        }
        await expectFailure(.invalidRequest, transport, TransportRequest("http://127.0.0.1:1/a\r\nb"))
        let odd = TransportRequest("http://127.0.0.1:1/", method: "A B")
        await expectFailure(.invalidRequest, transport, odd)
        await expectFailure(.unsupportedScheme, transport, TransportRequest("file:///etc/passwd"))
    }

    @Test func `a missing library is an error that names the package`() async throws {
        let transport = Transport(mostTransfers: 1) { () throws(TransportError) in
            try LibCurl(opening: "libcurl-that-is-not-there.so.4")
        }
        let error = await expectFailure(.libraryMissing, transport, TransportRequest("http://127.0.0.1:1/"))
        #expect(error?.message.contains("libcurl4") == true)
    }

    @Test func `messages omit the secret parts of a URL`() {
        let request = TransportRequest("https://user:word@host:1/path?token=1#f")
        #expect(request.place == "https://host:1/path")
    }
}
