// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import Transport

/// TLS and HTTP/2 with a real server.
@Suite(.takesTurns, .enabled(if: TLSServer.isInstalled, "needs nginx-light and openssl"))
struct SecurityTests {
    let transport = Transport()

    private func request(_ server: TLSServer, _ path: String = "/") -> TransportRequest {
        var request = TransportRequest(server.url(path))
        request.security.authorityFile = server.path("authority.pem")
        return request
    }

    @Test func `a server is trusted only with its own certificate authority`() async throws {
        let server = try TLSServer("return 200 hello;")
        var request = request(server)
        #expect(try await transport.perform(request).body == Data("hello".utf8))
        // Kept connections were made with other security settings.
        request.security.authorityFile = server.path("stranger.pem")
        await expectFailure(.tls, transport, request)
        request.security = TransportSecurity()
        await expectFailure(.tls, transport, request)
        request.security.authorityFile = server.path("not-there.pem")
        await expectFailure(.tls, transport, request)
    }

    @Test func `a certificate for another host name is an error`() async throws {
        let server = try TLSServer("return 200 hello;")
        var request = request(server)
        request.url = server.url(host: "localhost")
        await expectFailure(.tls, transport, request)
    }

    @Test func `a server that requires a client certificate receives it`() async throws {
        let server = try TLSServer(
            """
            ssl_client_certificate DIRECTORY/authority.pem; ssl_verify_client on;
            return 200 $ssl_client_s_dn;
            """
        )
        var request = request(server)
        // nginx reports the missing certificate in an HTTP response.
        #expect(try await transport.perform(request).status == 400)
        request.security.certificateFile = server.path("client.pem")
        request.security.keyFile = server.path("client.key")
        let response = try await transport.perform(request)
        #expect(response.status == 200 && response.body == Data("CN=client".utf8))
        // A new transport, because this one has an authenticated connection.
        request.security.keyFile = server.path("server.key")
        await expectFailure(.tls, Transport(), request)
    }

    @Test func `a server that does not speak TLS is an error`() async throws {
        let server = try TLSServer("listen 127.0.0.1:PLAIN; return 200 hello;")
        var request = request(server)
        request.url = "https://127.0.0.1:\(server.plainPort)/"
        await expectFailure(.tls, transport, request)
        request.url = "http://127.0.0.1:\(server.plainPort)/"
        #expect(try await transport.perform(request).body == Data("hello".utf8))
    }

    @Test func `HTTP/2 is used if the server offers it, and several requests share one connection`()
        async throws
    {
        let server = try TLSServer("return 200 $server_protocol;")
        let request = request(server)
        for number in 0..<5 {
            let response = try await transport.perform(request)
            #expect(response.version == "2" && response.body == Data("HTTP/2.0".utf8))
            #expect(response.connections == (number == 0 ? 1 : 0))
        }
    }

    @Test func `a long body arrives complete over HTTP/2, and its size limit is enforced`() async throws {
        let server = try TLSServer()
        let body = Data((0..<20_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try server.serve("long", body)
        #expect(try await transport.perform(request(server, "/long")).body == body)
        var limited = request(server, "/long")
        limited.mostBytes = 19_999_999
        await expectFailure(.tooLarge, transport, limited)
    }

    @Test func `a TLS session is resumed on the next connection`() async throws {
        let server = try TLSServer(
            "keepalive_timeout 0; ssl_session_cache shared:s:1m; return 200 $ssl_session_reused;"
        )
        let transport = Transport(mostTransfers: 1)
        var request = request(server)
        // Some versions do not resume sessions over HTTP/2, which is not used for requests with a body.
        request.method = "PUT"
        request.body = Data([1])
        var sessions: [Data] = []
        for _ in 0..<3 {
            let response = try await transport.perform(request)
            #expect(response.connections == 1)
            sessions.append(response.body)
        }
        #expect(sessions == [".", "r", "r"].map { Data($0.utf8) })
    }

    @Test func `a body is sent over HTTP/1.1 even if the server supports HTTP/2`() async throws {
        let server = try TLSServer("dav_methods PUT DELETE; client_max_body_size 100m;")
        let body = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        var put = request(server, "/file")
        put.method = "PUT"
        put.body = body
        let response = try await transport.perform(put)
        #expect(response.status == 201 && response.version == "1.1")
        #expect(try await transport.perform(request(server, "/file")).body == body)
    }

    @Test func `through a proxy, TLS is end to end with the server`() async throws {
        let server = try TLSServer("return 200 $server_protocol;")
        // Captures only the port: the handler lives as long as the process.
        let proxy = try LoopbackServer { [port = server.port] peer in
            guard peer.path == "name.test:443" else { return peer.answer("404 Not Found") }
            peer.send("HTTP/1.1 200 OK\r\n\r\n")
            peer.relay(to: port)
            return false
        }
        var request = request(server)
        request.url = "https://name.test/"
        request.proxy = .server("http://127.0.0.1:\(proxy.port)")
        #expect(try await transport.perform(request).body == Data("HTTP/2.0".utf8))
    }
}
