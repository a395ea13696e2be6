// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import Transport

/// Locations of redirects, and the fields that are sent there.
@Suite(.takesTurns) struct RedirectTests {
    let transport = Transport()

    /// Sends a request with secret fields, a plain one and credentials; returns the head that the last server received,
    /// in lower case.
    private func heads(from first: (LoopbackServer) -> String) async throws -> String {
        let last = try LoopbackServer { $0.answer("200 OK") }
        let place = first(last)
        let server = try LoopbackServer { peer in
            if peer.path == "/end" { return peer.answer("200 OK") }
            return peer.answer("302 Found", ["Location: \(place)"])
        }
        var request = TransportRequest(server.url())
        request.mostRedirects = 3
        request.fields = [
            HeaderField("X-Api-Key", "word"), HeaderField("Cookie", "a=word"),
            HeaderField("Accept", "text/plain"), HeaderField("X-Mine", "word", isSecret: true),
            HeaderField("Host", "elsewhere"),
        ]
        request.credentials = TransportCredentials(user: "user", password: "word")
        #expect(try await transport.perform(request).status == 200)
        #expect(server.requests.first?.contains("Authorization: Basic ") == true)
        return (last.requests.last ?? server.requests.last ?? "").lowercased()
    }

    @Test func `secrets are not sent to another server`() async throws {
        let head = try await heads { $0.url() }
        #expect(head.contains("accept: text/plain"))
        for name in ["x-api-key", "cookie", "x-mine", "authorization", "word", "elsewhere"] {
            #expect(!head.contains(name), "\(name)")
        }
    }

    @Test func `secrets are sent again to the same server`() async throws {
        let head = try await heads { _ in "/end" }
        for name in ["x-api-key", "cookie", "x-mine", "authorization", "accept", "elsewhere"] {
            #expect(head.contains(name), "\(name)")
        }
    }

    @Test func `secrets dropped by one redirect are not sent by a later one`() async throws {
        let other = Locked<String>.Box("")
        let first = try LoopbackServer { peer in
            if peer.path == "/back" { return peer.answer("200 OK") }
            return peer.answer("307 Temporary Redirect", ["Location: \(other.value.withLock { $0 })"])
        }
        let second = try LoopbackServer { peer in
            peer.answer("308 Permanent Redirect", ["Location: \(first.url("/back"))"])
        }
        other.value.withLock { $0 = second.url() }
        var request = TransportRequest(first.url())
        request.mostRedirects = 2
        request.fields = [HeaderField("Authorization", "Bearer word")]
        let response = try await transport.perform(request)
        #expect(response.url == first.url("/back") && response.redirects == 2)
        #expect(first.requests.count == 2 && first.requests.last?.contains("word") == false)
    }

    @Test(arguments: [
        ("/a b", "/a%20b"), ("../x?y=ü", "/x?y=%C3%BC"), ("?q", "/dir/file?q"), ("//HOST/z", "/z"),
        ("%41", "/dir/%41"),
    ])
    func `relative and unescaped locations are resolved`(_ location: String, _ path: String) async throws {
        let host = Locked<String>.Box("")
        let server = try LoopbackServer { peer in
            guard peer.path == "/dir/file" else { return peer.answer() }
            let place = location.replacing("HOST", with: host.value.withLock { $0 })
            return peer.answer("301 Moved", ["Location: \(place)"])
        }
        host.value.withLock { $0 = "127.0.0.1:\(server.port)" }
        var request = TransportRequest(server.url("/dir/file"))
        request.mostRedirects = 1
        let url = try await transport.perform(request).url
        #expect(url.lowercased() == server.url(path).lowercased())
    }

    @Test func `a redirect with an endless body does not delay the transfer`() async throws {
        let server = try LoopbackServer { peer in
            if peer.path == "/end" { return peer.answer("200 OK", [], [1]) }
            peer.send("HTTP/1.1 302 Found\r\nLocation: /end\r\n\r\n")
            while peer.send([UInt8](repeating: 0, count: 65536)) {}
            return false
        }
        var request = TransportRequest(server.url())
        request.mostRedirects = 1
        request.mostBytes = 1
        let response = try await transport.perform(request)
        #expect(response.body == Data([1]))
        #expect(response.connections == 2)
    }

    @Test func `redirects of PUT, POST and DELETE are not followed`() async throws {
        let server = try LoopbackServer { $0.answer("307 Temporary Redirect", ["Location: /"]) }
        for method in ["PUT", "POST", "DELETE"] {
            var request = TransportRequest(server.url(), method: method)
            request.mostRedirects = 3
            #expect(try await transport.perform(request).status == 307)
        }
        #expect(server.requests.count == 3)
    }

    @Test func `the head size limit covers the heads of all redirects`() async throws {
        let long = "X: " + String(repeating: "x", count: 4000)
        let server = try LoopbackServer { $0.answer("302 Found", ["Location: /", long]) }
        var request = TransportRequest(server.url())
        request.mostRedirects = 100
        request.mostHeadBytes = 20_000
        await expectFailure(.headTooLarge, transport, request)
        #expect(server.requests.count == 5)
    }

    @Test(arguments: [
        ("http://a/", "http://A:80/b", true), ("https://a/", "https://a:443", true),
        ("http://a/", "https://a/", false), ("http://a/", "http://a:81/", false),
        ("http://u:p@a/", "http://a/", true), ("http://a/", "http://a@b/", false),
        ("http://a/", "http://a.b/", false), ("http://a?x", "http://a/", true),
    ])
    func `servers are identified by scheme, host and port`(_ one: String, _ other: String, _ isSame: Bool) {
        #expect((TransportRequest(one).origin == TransportRequest(other).origin) == isSame)
    }
}
