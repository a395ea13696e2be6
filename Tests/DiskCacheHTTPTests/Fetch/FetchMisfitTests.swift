// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Responses that do not match their request.
@Suite(.takesTurns) struct FetchMisfitTests {
    @Test(arguments: [
        WebServer.Answer(206, ["Content-Range: bytes 5-9/100"], Data("56789".utf8)),
        WebServer.Answer(304, ["ETag: \"other\""], Data()),
    ])
    func `an unrequested 206 or 304 is an error`(answer: WebServer.Answer) async throws {
        let place = try FetchFixture { _ in answer }
        #expect(await place.failure()?.code == .protocolViolation)
        #expect(place.server.requests.count == 2, "asked once more")
        // A caller that asks for it gets it.
        let own = answer.status == 206 ? ("Range", "bytes=5-9") : ("If-None-Match", "\"other\"")
        let response = try await place.fetch { $0.fields = [own] }
        #expect(response.status == answer.status)
    }

    @Test func `a 304 to the unconditional request after a mismatched 304 is an error`() async throws {
        let place = try FetchFixture { request in
            guard request["DNT"] == nil else { return WebServer.Answer(304, ["ETag: \"b\""], Data()) }
            return WebServer.Answer(200, ["Cache-Control: max-age=1", "ETag: \"a\""], Data("hello".utf8))
        }
        _ = try await place.fetch()
        place.clock.advance(by: 2)
        #expect(await place.failure { $0.fields = [("DNT", "1")] }?.code == .protocolViolation)
    }

    @Test(arguments: [
        ("If-Match", "\"b\"", 412), ("If-None-Match", "*", 412), ("If-Unmodified-Since", "x", 412),
        ("Range", "bytes=99-", 416), ("If-None-Match", "\"a\"", 404),
    ])
    func `the response to one caller's condition is not stored for others`(
        name: String,
        value: String,
        status: Int
    ) async throws {
        let place = try FetchFixture { request in
            let isAsked = request[name] != nil
            return WebServer.Answer(isAsked ? status : 200, ["Cache-Control: max-age=60"], Data("a".utf8))
        }
        let own = try await place.fetch { $0.fields = [(name, value)] }
        #expect(own.status == status && !own.cacheStatus.isStored)
        let other = try await place.fetch()
        #expect(other.status == 200 && other.text == "a" && !other.cacheStatus.isHit)
    }

    @Test func `a partial response does not satisfy the digest of the whole`() async throws {
        let place = try FetchFixture { _ in
            WebServer.Answer(206, ["Content-Range: bytes 0-4/100"], Data("hello".utf8))
        }
        let failure = await place.failure {
            $0.fields = [("Range", "bytes=0-4")]
            $0.digest = "sha256:" + String(repeating: "0", count: 64)
        }
        #expect(failure?.code == .digestMismatch)
    }

    @Test func `a Host field from the caller must match the URL`() async throws {
        let place = try FetchFixture { WebServer.Answer(200, [], Data(($0["Host"] ?? "").utf8)) }
        #expect(await place.failure { $0.fields = [("Host", "other.example")] }?.code == .invalidRequest)
        let host = "127.0.0.1:\(place.server.port)"
        #expect(try await place.fetch { $0.fields = [("host", host)] }.text == host)
        #expect(place.server.requests.count == 1)
    }

    @Test func `a non-ASCII host is an error that mentions Punycode`() async throws {
        let place = try FetchFixture { _ in WebServer.Answer(200, [], Data()) }
        let request = FetchRequest("http://b\u{FC}cher.invalid/")
        await #expect { _ = try await place.http.fetch(request) } throws: {
            ($0 as? FetchError)?.code == .invalidURL && "\($0)".contains("xn--")
        }
    }

    @Test func `a 304 with a different Vary renews nothing`() async throws {
        let place = try FetchFixture { request in
            let language = request["Accept-Language"] ?? ""
            if request["If-None-Match"] != nil {
                let fields = ["ETag: \"a\"", "Vary: Accept-Language", "Cache-Control: max-age=600"]
                return WebServer.Answer(304, fields)
            }
            let fields = ["ETag: \"a\"", "Cache-Control: max-age=0"]
            return WebServer.Answer(200, fields, Data(language.utf8))
        }
        for language in ["de", "de", "fr"] {
            #expect(try await place.fetch { $0.fields = [("Accept-Language", language)] }.text == language)
        }
    }

    @Test func `a redirect location may contain a space`() async throws {
        let place = try FetchFixture { request in
            guard request.path == "/" else { return WebServer.Answer(200, [], Data(request.path.utf8)) }
            return WebServer.Answer(302, ["Location: /a b"])
        }
        #expect(try await place.fetch().text == "/a%20b")
    }

    @Test func `fields are returned unchanged, except that line breaks become spaces`() async throws {
        let place = try FetchFixture { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60", "X-A: a\rB: c", "X-B: \u{301} b"])
        }
        for _ in 0..<2 {
            let response = try await place.fetch()
            #expect(response.field("x-a") == "a B: c")
            #expect(response.field("x-b") == "\u{301} b")
        }
        #expect(place.server.requests.count == 1)
    }
}
