// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Client certificates and certificate authorities.
@Suite(.takesTurns, .enabled(if: TLSServer.isInstalled, "needs nginx-light and openssl"))
struct FetchIdentityTests {
    private let server: TLSServer
    private let directory: TemporaryDirectory
    private let cache: SharedCache

    init() throws {
        server = try TLSServer(
            """
            ssl_client_certificate DIRECTORY/authority.pem; ssl_verify_client optional;
            add_header Cache-Control max-age=3600; return 200 "for <$ssl_client_s_dn>";
            """
        )
        directory = try TemporaryDirectory()
        cache = try SharedCache(at: directory.path + "/cache")
    }

    private func fetch(_ certificate: String?) async throws -> FetchResponse {
        var options = HTTPCacheOptions()
        options.authorityFile = server.path("authority.pem")
        options.certificateFile = certificate.map { server.path($0 + ".pem") }
        options.certificateKeyFile = certificate.map { server.path($0 + ".key") }
        return try await HTTPCache(cache, options: options).fetch(FetchRequest(server.url("/x")))
    }

    @Test func `a response for one client certificate is not returned for another`() async throws {
        for isStored in [false, true] {
            for (certificate, name) in [(nil, ""), ("client", "CN=client"), ("server", "CN=server")] {
                let response = try await fetch(certificate)
                #expect(response.text == "for <\(name)>")
                #expect(response.cacheStatus.isHit == isStored)
            }
        }
    }

    @Test func `an untrusted server or a missing client certificate is a TLS error`() async throws {
        let strangers = HTTPCache(cache)
        await #expect { _ = try await strangers.fetch(FetchRequest(server.url())) } throws: {
            ($0 as? FetchError)?.code == .tls
        }
        await #expect { _ = try await fetch("nobody") } throws: { ($0 as? FetchError)?.code == .tls }
    }
}
