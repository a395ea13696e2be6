// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
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

    @Test func `a body of another digest is an error even if it can't be stored`() async throws {
        let own = Locked<ResponseStore?>.Box(nil)
        let count = Locked(0)
        let place = try FetchFixture { request in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            // Its URL is invalidated while it is on its way.
            if !isFirst, let url = HTTPURL("http://\(request["Host"] ?? "")/") {
                #expect(throws: Never.self) { try own.value.withLock { try $0?.invalidate(url) } }
            }
            return WebServer.Answer(200, ["Cache-Control: max-age=0"], Data(isFirst ? "a".utf8 : "b".utf8))
        }
        own.value.withLock { $0 = ResponseStore(cache: place.cache, options: HTTPCacheOptions()) }
        _ = try await place.fetch()
        place.clock.advance(by: 1)
        let digest = "sha256:\(Digest(of: Data("c".utf8)))"
        #expect(await place.failure { $0.digest = digest }?.code == .digestMismatch)
        #expect(count.withLock { $0 } == 2)
    }

    @Test(arguments: ["\"a\u{1}\"", "\"a\u{7F}\""])
    func `an entity tag that can't be sent back is ignored`(tag: String) async throws {
        let place = try FetchFixture { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=1", "ETag: \(tag)"], Data("a".utf8))
        }
        #expect(try await place.fetch().text == "a")
        place.clock.advance(by: 2)
        #expect(try await place.fetch().text == "a")
        #expect(place.server.requests.allSatisfy { $0["If-None-Match"] == nil })
    }

    @Test func `fields about the body's transfer are left to the transport`() async throws {
        let place = try FetchFixture { _ in WebServer.Answer() }
        _ = try await place.fetch {
            $0.fields = [("Content-Length", "50"), ("Transfer-Encoding", "chunked")]
        }
        #expect(place.server.requests.count == 1)
        #expect(place.server.requests[0]["Content-Length"] == nil)
        #expect(place.server.requests[0]["Transfer-Encoding"] == nil)
    }

    @Test func `any number of concurrent requests can be allowed`() async throws {
        var options = HTTPCacheOptions()
        (options.requests, options.requestsPerHost) = (.max, .max)
        let place = try FetchFixture(options: options) { _ in WebServer.Answer() }
        #expect(try await place.fetch().status == 200)
    }

    @Test func `a no-store response that one caller keeps is no hit for others`() async throws {
        for control in ["no-store", "no-store, max-age=3600"] {
            let place = try FetchFixture { _ in
                let modified = "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT"
                return WebServer.Answer(200, ["Cache-Control: \(control)", modified], Data("a".utf8))
            }
            let own = { @Sendable (request: inout FetchRequest) in request.timeToLive = .seconds(60) }
            #expect(try await place.fetch("/", own).cacheStatus.isStored)
            #expect(try await place.fetch("/", own).cacheStatus.isHit)
            #expect(try await place.fetch { $0.mode = .onlyIfCached }.status == 504)
            #expect(try await !place.fetch().cacheStatus.isHit)
            #expect(place.server.requests.count == 2)
        }
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
