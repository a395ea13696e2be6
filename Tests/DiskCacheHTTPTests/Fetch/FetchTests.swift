// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Requests to the server, responses to the caller, and stored responses.
@Suite(.takesTurns) struct FetchTests {
    private let bytes = Data("hello".utf8)

    @Test func `a fresh response is returned without a request`() async throws {
        let place = try FetchFixture { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("hello".utf8))
        }
        let first = try await place.fetch()
        #expect(first.status == 200 && first.text == "hello" && first.cacheStatus.isStored)
        #expect(first.cacheStatus.forward == .uriMiss)
        place.clock.advance(by: 59)
        let second = try await place.fetch()
        #expect(second.text == "hello" && second.cacheStatus.isHit)
        #expect(second.age == .seconds(59))
        #expect(second.digest == "sha256:\(Digest(of: bytes))")
        #expect(place.server.requests.count == 1)
        #expect(place.partials.isEmpty)
    }

    @Test func `a stale response is revalidated, and a 304 writes no object`() async throws {
        let place = try FetchFixture {
            WebServer.Answer.resource($0, Data("hello".utf8), tag: "1", ["Cache-Control: max-age=60"])
        }
        _ = try await place.fetch()
        let objects = place.directory.files(below: "cache/objects")
        let written = place.cache.directory.activity
        place.clock.advance(by: 61)
        let renewed = try await place.fetch()
        #expect(renewed.status == 200 && renewed.text == "hello")
        #expect(renewed.cacheStatus.forward == .stale && renewed.cacheStatus.forwardStatus == 304)
        #expect(place.server.requests.last?["If-None-Match"] == "\"1\"")
        #expect(place.directory.files(below: "cache/objects") == objects)
        #expect(place.cache.directory.activity.bytesWritten == written.bytesWritten)
        place.clock.advance(by: 59)
        #expect(try await place.fetch().cacheStatus.isHit)
        #expect(place.server.requests.count == 2)
    }

    @Test func `a response with max-age=0 is revalidated each time, even at once`() async throws {
        let place = try FetchFixture {
            WebServer.Answer.resource($0, Data("hello".utf8), tag: "1", ["Cache-Control: max-age=0"])
        }
        for _ in 0..<3 {
            let response = try await place.fetch()
            #expect(response.text == "hello" && !response.cacheStatus.isCollapsed)
        }
        #expect(place.server.requests.count == 3)
    }

    @Test func `a no-store response is not stored`() async throws {
        let place = try FetchFixture { _ in WebServer.Answer(200, ["Cache-Control: no-store"], Data("a".utf8))
        }
        for _ in 0..<2 {
            let response = try await place.fetch()
            #expect(response.text == "a" && !response.cacheStatus.isStored)
        }
        #expect(place.server.requests.count == 2)
        #expect(place.directory.files(below: "cache/objects").isEmpty && place.partials.isEmpty)
    }

    @Test func `variants are distinguished by the fields that Vary names`() async throws {
        let place = try FetchFixture { request in
            let language = request["Accept-Language"] ?? "-"
            let fields = ["Cache-Control: max-age=60", "Vary: Accept-Language"]
            return WebServer.Answer(200, fields, Data(language.utf8))
        }
        for _ in 0..<2 {
            for language in ["de", "fr"] {
                let response = try await place.fetch { $0.fields = [("Accept-Language", language)] }
                #expect(response.text == language)
            }
        }
        #expect(place.server.requests.count == 2)
    }

    @Test func `credentials are not stored, and other callers don't get the response`() async throws {
        let place = try FetchFixture { request in
            let fields = ["Cache-Control: max-age=60", "Set-Cookie: a=tOken1"]
            return WebServer.Answer(200, fields, Data((request["Authorization"] == nil ? "no" : "yes").utf8))
        }
        let secret = try await place.fetch { $0.fields = [("Authorization", "Bearer tOken1")] }
        #expect(secret.text == "yes")
        #expect(try await place.fetch().text == "no")
        #expect(try await place.fetch { $0.fields = [("Authorization", "Bearer tOken1")] }.cacheStatus.isHit)
        let root = place.directory.path
        let files = place.directory.files().map { FileManager.default.contents(atPath: root + "/" + $0) }
        #expect(files.allSatisfy { $0?.range(of: Data("tOken1".utf8)) == nil })
        let heads = try await place.cache.blocking { cache in
            try cache.entries().map { try $0.get() }.map { "\($0.key ?? "")\($0.metadata)" }
        }
        #expect(heads.count >= 4 && heads.allSatisfy { !$0.contains("tOken1") })
    }

    @Test func `only the caller that the server answers gets its cookies, and none is on disk`() async throws
    {
        let place = try FetchFixture { request in
            let fields = ["Cache-Control: max-age=60", "Set-Cookie: a=cOOkie1", "set-cookie2: b=cOOkie2"]
            let isKnown = request["If-None-Match"] != nil
            return WebServer.Answer(isKnown ? 304 : 200, fields + ["ETag: \"1\""], Data("x".utf8))
        }
        #expect(try await place.fetch().cookies == ["a=cOOkie1", "b=cOOkie2"])
        let hit = try await place.fetch()
        #expect(hit.cacheStatus.isHit && hit.text == "x" && hit.cookies == [])
        place.clock.advance(by: 61)
        let renewed = try await place.fetch()
        #expect(renewed.cacheStatus.forwardStatus == 304 && renewed.cookies == ["a=cOOkie1", "b=cOOkie2"])
        #expect(try await place.fetch().cookies == [])
        let root = place.directory.path
        let files = place.directory.files().map { FileManager.default.contents(atPath: root + "/" + $0) }
        #expect(files.count > 4 && files.allSatisfy { $0?.range(of: Data("cOOkie".utf8)) == nil })
        let heads = try await place.cache.blocking { cache in
            try cache.entries().map { try "\($0.get().metadata)" }
        }
        #expect(heads.count == 2 && heads.allSatisfy { !$0.contains("cOOkie") })
    }

    @Test func `a successful unsafe request invalidates the stored response`() async throws {
        let place = try FetchFixture { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("a".utf8))
        }
        _ = try await place.fetch()
        let post = try await place.fetch {
            $0.method = "POST"
            $0.body = Data("b".utf8)
        }
        #expect(post.cacheStatus.forward == .method)
        #expect(place.server.requests.last?.body == Data("b".utf8))
        #expect(try await place.fetch().cacheStatus.isHit == false)
        #expect(place.server.requests.count == 3)
    }

    @Test(arguments: [false, true]) func `an unsafe request also invalidates fetches in progress`(
        isStoredMeanwhile: Bool
    ) async throws {
        let gate = Gate()
        defer { gate.open() }
        let count = Locked(0)
        let place = try FetchFixture { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { gate.wait() }
            return WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("\(number)".utf8))
        }
        let own = [("X-Api-Key", "a")]
        async let slow = place.fetch { $0.fields = own }
        await waitUntil("it is asked") { place.server.requests.count == 1 }
        if isStoredMeanwhile { #expect(try await place.fetch().cacheStatus.isStored) }
        _ = try await place.fetch { $0.method = "POST" }
        gate.open()
        let old = try await slow
        #expect(old.text == "1" && !old.cacheStatus.isStored)
        let new = try await place.fetch { $0.fields = own }
        #expect(new.text != "1" && new.cacheStatus.isStored)
        #expect(try await place.fetch { $0.fields = own }.cacheStatus.isHit)
    }

    @Test func `a range is answered from a complete body`() async throws {
        let place = try FetchFixture {
            WebServer.Answer.resource($0, Data("0123456789".utf8), tag: "1", ["Cache-Control: max-age=9"])
        }
        _ = try await place.fetch()
        let response = try await place.fetch { $0.fields = [("Range", "bytes=2-4")] }
        #expect(response.status == 206 && response.text == "234")
        #expect(place.server.requests.count == 1)
    }

    @Test func `a response that was received for a range is stored whole`() async throws {
        let version = Locked(1)
        let place = try FetchFixture { request in
            let number = version.withLock { $0 }
            let body = Data("\(number)123456789".utf8)
            return WebServer.Answer.resource(request, body, tag: "\(number)", ["Cache-Control: max-age=9"])
        }
        _ = try await place.fetch()
        version.withLock { $0 = 2 }
        place.clock.advance(by: 60)
        // Sent without the range, to validate the stored response.
        let response = try await place.fetch { $0.fields = [("Range", "bytes=0-1")] }
        #expect(response.status == 206 && response.text == "21" && response.cacheStatus.isStored)
        #expect(try await place.fetch { $0.fields = [("Range", "bytes=8-")] }.text == "89")
        #expect(place.server.requests.count == 2)
    }

    @Test func `HEAD is answered from a stored GET response`() async throws {
        let place = try FetchFixture { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=9"], Data("abc".utf8))
        }
        _ = try await place.fetch()
        let head = try await place.fetch { $0.method = "HEAD" }
        #expect(head.cacheStatus.isHit && head.body.isEmpty && head.field("content-length") == "3")
    }

    @Test func `modes decide whether the server is asked and which responses are used`() async throws {
        let place = try FetchFixture {
            WebServer.Answer.resource($0, Data("a".utf8), tag: "1", ["Cache-Control: max-age=9"])
        }
        #expect(try await place.fetch { $0.mode = .offline }.status == 504)
        #expect(try await place.fetch { $0.mode = .onlyIfCached }.status == 504)
        #expect(place.server.requests.isEmpty)
        _ = try await place.fetch()
        // A response received at the same instant satisfies any mode.
        place.clock.advance(by: 1)
        #expect(try await place.fetch { $0.mode = .revalidate }.cacheStatus.forwardStatus == 304)
        place.clock.advance(by: 1)
        #expect(try await place.fetch { $0.mode = .reload }.cacheStatus.forwardStatus == 200)
        #expect(place.server.requests.count == 3)
        place.clock.advance(by: 100)
        #expect(try await place.fetch { $0.mode = .offline }.text == "a")
        #expect(try await place.fetch { $0.mode = .cacheFirst }.text == "a")
        #expect(place.server.requests.count == 3)
    }

    @Test func `the caller's lifetime overrides the headers`() async throws {
        let place = try FetchFixture { _ in WebServer.Answer(200, ["Cache-Control: no-store"], Data("a".utf8))
        }
        _ = try await place.fetch { $0.timeToLive = .seconds(60) }
        #expect(try await place.fetch { $0.timeToLive = .seconds(60) }.cacheStatus.isHit)
    }

    @Test func `each redirect is stored as a separate response`() async throws {
        let place = try FetchFixture { request in
            let fields = ["Cache-Control: max-age=60"]
            if request.path == "/a" { return WebServer.Answer(301, fields + ["Location: b"]) }
            return WebServer.Answer(200, fields, Data(request.path.utf8))
        }
        let response = try await place.fetch("/a")
        #expect(response.text == "/b" && response.url == place.server.url("/b"))
        #expect(try await place.fetch("/b").cacheStatus.isHit)
        #expect(try await place.fetch("/a").text == "/b")
        #expect(try await place.fetch("/a") { $0.mostRedirects = 0 }.status == 301)
        #expect(place.server.requests.count == 2)
    }

    @Test func `a body is written to a file or a descriptor`() async throws {
        let body = noise(count: 3_000_000, seed: 1)
        let place = try FetchFixture { _ in WebServer.Answer(200, ["Cache-Control: max-age=60"], body) }
        let path = place.directory.path + "/out"
        for _ in 0..<2 {
            let response = try await place.fetch { $0.output = .file(path) }
            #expect(response.body.isEmpty && response.length == 3_000_000)
            #expect(FileManager.default.contents(atPath: path) == body)
            try FileManager.default.removeItem(atPath: path)
        }
        let pipe = Foundation.Pipe()
        let number = pipe.fileHandleForWriting.fileDescriptor
        async let response = place.fetch { $0.output = .descriptor(number) }
        let read = try pipe.fileHandleForReading.read(upToCount: 3_000_000)
        #expect(try await response.length == 3_000_000)
        #expect(read == body)
    }

    @Test func `a body can be read in pieces`() async throws {
        let body = noise(count: 700_000, seed: 2)
        let place = try FetchFixture { _ in WebServer.Answer(200, ["Cache-Control: max-age=60"], body) }
        var pieces: [Data] = []
        for try await piece in place.http.body(of: place.request()) { pieces.append(piece) }
        #expect(pieces.count == 3)
        #expect(pieces.reduce(Data(), +) == body)
    }

    @Test func `blocking callers get the same response`() throws {
        let place = try FetchFixture { _ in
            WebServer.Answer(404, ["Cache-Control: max-age=60"], Data("no".utf8))
        }
        let request = place.request()
        #expect(try place.http.fetchAndWait(request).status == 404)
        #expect(try place.http.fetchAndWait(request).cacheStatus.isHit)
    }

    @Test func `a body with the wrong digest is an error and is not stored`() async throws {
        let place = try FetchFixture { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("a".utf8))
        }
        let wrong = "sha256:" + String(repeating: "0", count: 64)
        let own = "\(Digest(of: Data("a".utf8)))"
        #expect(await place.failure { $0.digest = wrong }?.code == .digestMismatch)
        let objects = place.directory.files(below: "cache/objects")
        #expect(!objects.contains { $0.hasSuffix(own.dropFirst(4)) } && place.partials.isEmpty)
        let right = "sha256:\(own)"
        #expect(try await place.fetch { $0.digest = right }.text == "a")
    }
}

extension FetchResponse {
    fileprivate var cookies: [String] {
        fields.filter { $0.name.lowercased().hasPrefix("set-cookie") }.map(\.value)
    }
}
