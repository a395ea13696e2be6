// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Requests that change something on the server.
@Suite(.takesTurns) struct UnsafeRequestTests {
    private static let methods = ["POST", "PUT", "PATCH", "DELETE"]

    /// A server that answers a GET with a fresh response, and other requests with `answer`.
    private func place(_ answer: WebServer.Answer) throws -> FetchFixture {
        try FetchFixture { request in
            if request.method != "GET" { return answer }
            return WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("a".utf8))
        }
    }

    private func isStored(_ place: FetchFixture) async throws -> Bool {
        try await place.fetch { $0.mode = .onlyIfCached }.status == 200
    }

    @Test(arguments: methods, [206, 304])
    func `a request is sent once, whatever status the server answers`(method: String, status: Int)
        async throws
    {
        let part = WebServer.Answer(206, ["Content-Range: bytes 0-0/9"], Data("b".utf8))
        let answer = status == 206 ? part : WebServer.Answer(status)
        let place = try place(answer)
        _ = try await place.fetch()
        let response = try await place.fetch {
            $0.method = method
            $0.body = Data("c".utf8)
        }
        #expect(response.status == status)
        #expect(place.server.requests.map(\.method) == ["GET", method])
        #expect(try await !isStored(place))
    }

    @Test(arguments: methods, [0, 10])
    func `a response without its whole body invalidates, too`(method: String, sent: Int) async throws {
        let place = try place(WebServer.Answer(200, [], Data(count: 1000), cut: sent))
        _ = try await place.fetch()
        let failure = await place.failure {
            $0.method = method
            $0.body = Data("c".utf8)
        }
        #expect(failure?.code == .truncated)
        #expect(try await !isStored(place))
    }

    @Test func `a body that is too long or has another digest does not prevent that`() async throws {
        for change: @Sendable (inout FetchRequest) -> Void in [
            { $0.maximumSize = 10 }, { $0.digest = "sha256:" + String(repeating: "0", count: 64) },
        ] {
            let place = try place(WebServer.Answer(200, [], Data(count: 1000)))
            _ = try await place.fetch()
            let failure = await place.failure {
                $0.method = "POST"
                change(&$0)
            }
            #expect(failure?.code == .tooLarge || failure?.code == .digestMismatch)
            #expect(try await !isStored(place))
        }
    }

    @Test func `a full cache does not prevent that`() async throws {
        let place = try place(WebServer.Answer(201, ["Location: /b"]))
        for path in ["/", "/b"] { _ = try await place.fetch(path) }
        _ = try await place.cache.blocking { cache in
            try cache.directory.updateLimits { $0.maximumValueSize = ByteCount(1) }
        }
        #expect(try await place.fetch { $0.method = "POST" }.status == 201)
        for path in ["/", "/b"] {
            #expect(try await place.fetch(path) { $0.mode = .onlyIfCached }.status == 504)
        }
    }

    @Test func `a request that was not sent leaves the stored response`() async throws {
        let place = try place(WebServer.Answer(200))
        _ = try await place.fetch()
        place.server.stop()
        #expect(await place.failure { $0.method = "POST" }?.code == .unreachable)
        #expect(try await isStored(place))
    }

    @Test func `a request without a body states its length if the method has one`() async throws {
        let place = try place(WebServer.Answer(200))
        for method in Self.methods { _ = try await place.fetch { $0.method = method } }
        #expect(place.server.requests.map { $0["Content-Length"] } == ["0", "0", "0", nil])
    }

    @Test func `an error leaves the stored response`() async throws {
        let place = try place(WebServer.Answer(500, [], Data(count: 1000), cut: 10))
        _ = try await place.fetch()
        #expect(await place.failure { $0.method = "POST" } != nil)
        #expect(try await isStored(place))
    }
}
