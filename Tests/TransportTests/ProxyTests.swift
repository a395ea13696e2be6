// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import Transport

/// Proxies and host names.
@Suite(.takesTurns) struct ProxyTests {
    let transport = Transport()

    @Test func `a proxy receives the absolute URL`() async throws {
        let proxy = try LoopbackServer { $0.answer("200 OK", [], [1]) }
        var request = TransportRequest("http://name.invalid/a?b")
        request.proxy = .server("http://user:word@127.0.0.1:\(proxy.port)")
        #expect(try await transport.perform(request).body == Data([1]))
        let head = try #require(proxy.requests.first)
        #expect(head.hasPrefix("GET http://name.invalid/a?b HTTP/1.1\r\n"))
        #expect(head.contains("Proxy-Authorization: Basic dXNlcjp3b3Jk\r\n"))
    }

    @Test func `a proxy that refuses CONNECT is an error with its status`() async throws {
        let proxy = try LoopbackServer { $0.answer("403 Forbidden") }
        var request = TransportRequest("https://name.invalid/")
        request.fields = [HeaderField("Authorization", "Bearer word")]
        request.proxy = .server("http://127.0.0.1:\(proxy.port)")
        let error = await expectFailure(.connectionFailed, transport, request)
        #expect(error?.message.contains("403") == true)
        let head = try #require(proxy.requests.first)
        #expect(head.hasPrefix("CONNECT name.invalid:443 HTTP/1.1\r\n"))
        #expect(!head.contains("word"))
    }

    @Test func `a proxy that requires authentication is a 407 for http and an error for https`() async throws
    {
        let proxy = try LoopbackServer { $0.answer("407 Proxy Authentication Required") }
        var request = TransportRequest("http://name.invalid/")
        request.proxy = .server("http://127.0.0.1:\(proxy.port)")
        #expect(try await transport.perform(request).status == 407)
        request.url = "https://name.invalid/"
        await expectFailure(.proxyForbidden, transport, request)
    }

    @Test func `an overlong host name is rejected`() async {
        let name = Array(repeating: "xxxxxxxxx", count: 28).joined(separator: ".")
        await expectFailure(.invalidRequest, transport, TransportRequest("http://\(name)/"))
    }

    @Test func `the environment names proxies by scheme`() {
        let variables = [
            "http_proxy": "http://one", "HTTP_PROXY": "http://never", "HTTPS_PROXY": "http://two",
            "https_proxy": "", "no_proxy": "example.org", "SSL_CERT_FILE": "/authority",
        ]
        let surroundings = ProxyEnvironment { variables[$0] }
        #expect(surroundings.proxy(for: "http://a/") == "http://one")
        #expect(surroundings.proxy(for: "HTTPS://a/") == "http://two")
        #expect(surroundings.authorityFile == "/authority")
        #expect(surroundings.withoutProxy.hasPrefix("example.org,"))
        #expect(surroundings.withoutProxy.contains("127.0.0.1"))
        let all = ProxyEnvironment { $0 == "ALL_PROXY" ? "socks5h://three" : nil }
        #expect(all.proxy(for: "http://a/") == "socks5h://three")
        #expect(all.proxy(for: "https://a/") == "socks5h://three")
        let none = ProxyEnvironment { _ in nil }
        #expect(none.proxy(for: "http://a/") == nil && none.authorityFile == nil)
    }

    @Test(arguments: [
        "foo://user:word@127.0.0.1:1", "http://user:wo rd@127.0.0.1:1", "user:wo@rd@127.0.0.1:x",
    ])
    func `an error about a proxy contains no password`(proxy: String) async throws {
        var request = TransportRequest("http://example.invalid/")
        request.proxy = .server(proxy)
        do {
            _ = try await transport.perform(request)
            Issue.record("it went well")
        } catch {
            #expect(!"\(error)".contains("wo") && !"\(error)".contains("user"), "\(error)")
        }
    }

    @Test func `an unresolvable host name is an error, and so is a proxy's`() async throws {
        // A label over the maximum length (RFC 1035, 2.3.4) fails without a DNS query.
        let name = String(repeating: "x", count: 64) + ".invalid"
        var request = TransportRequest("http://\(name)/")
        request.proxy = .none
        await expectFailure(.nameNotResolved, transport, request)
        request = TransportRequest("http://127.0.0.1/")
        request.proxy = .server("http://\(name):1")
        await expectFailure(.nameNotResolved, transport, request)
    }

    @Test func `a failed name lookup does not affect later requests`() async throws {
        let server = try LoopbackServer { $0.answer("200 OK", [], [1]) }
        let transport = Transport(mostTransfers: 1)
        var good = TransportRequest(server.url())
        good.proxy = .none
        // The target server is the same, so the same connections are used.
        var bad = good
        bad.proxy = .server("http://\(String(repeating: "x", count: 64)).invalid:1")
        for _ in 0..<20 {
            await expectFailure(.nameNotResolved, transport, bad)
            #expect(try await transport.perform(good).body == Data([1]))
            #expect(throws: TransportError.self) { try blocking(transport, bad) }
            #expect(try blocking(transport, good).body == Data([1]))
        }
        #expect(server.requests.count == 40)
    }

    @Test func `the time limit ends a blocking caller's name lookup`() throws {
        // On a machine with a network the lookup may fail earlier.
        var request = TransportRequest("http://name.invalid/")
        request.proxy = .none
        request.timeLimit = .milliseconds(20)
        let time = shortestTime(below: .milliseconds(500)) {
            #expect(throws: TransportError.self) { try blocking(transport, request) }
        }
        #expect(time < .milliseconds(500))
    }
}
