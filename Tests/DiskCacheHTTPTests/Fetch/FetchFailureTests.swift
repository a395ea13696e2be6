// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Servers that fail, interrupt a response, or misbehave.
@Suite(.takesTurns) struct FetchFailureTests {
    @Test func `an interrupted download resumes where it stopped`() async throws {
        let body = noise(count: 1_000_000, seed: 3)
        let place = try FetchFixture { request in
            var answer = WebServer.Answer.resource(request, body, tag: "1", ["Cache-Control: max-age=60"])
            if request["Range"] == nil { answer.cut = 400_000 }
            return answer
        }
        #expect(await place.failure()?.code == .truncated)
        #expect(place.partials.count == 1)
        let response = try await place.fetch()
        #expect(response.status == 200 && response.body == body && response.field("content-range") == nil)
        #expect(response.cacheStatus.isStored)
        #expect(place.server.requests.last?["If-Range"] == "\"1\"")
        #expect(place.server.requests.last?["Range"] == "bytes=400000-")
        #expect(place.partials.isEmpty)
        #expect(try await place.fetch().body == body)
        #expect(place.server.requests.count == 2)
    }

    @Test func `a changed body is resumed although an old response is stored`() async throws {
        let body = noise(count: 1_000_000, seed: 3)
        let count = Locked(0)
        let place = try FetchFixture { request in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            if isFirst {
                return WebServer.Answer(200, ["Cache-Control: max-age=1", "ETag: \"old\""], Data("a".utf8))
            }
            var answer = WebServer.Answer.resource(request, body, tag: "new", ["Cache-Control: max-age=60"])
            if request["Range"] == nil { answer.cut = 400_000 }
            return answer
        }
        _ = try await place.fetch()
        place.clock.advance(by: 2)
        #expect(await place.failure()?.code == .truncated)
        let response = try await place.fetch()
        #expect(response.status == 200 && response.body == body && response.cacheStatus.isStored)
        #expect(place.server.requests.map { $0["Range"] } == [nil, nil, "bytes=400000-"])
        #expect(place.server.requests.last?["If-None-Match"] == "\"old\"")
        #expect(try await place.fetch().cacheStatus.isHit)
    }

    @Test func `a request with no-store neither continues a partial download nor leaves one`() async throws {
        let body = noise(count: 1_000_000, seed: 3)
        let place = try FetchFixture { request in
            var answer = WebServer.Answer.resource(request, body, tag: "1", ["Cache-Control: max-age=60"])
            answer.cut = 400_000
            return answer
        }
        let unstored = { @Sendable (request: inout FetchRequest) in
            request.fields = [("Cache-Control", "no-store")]
        }
        #expect(await place.failure("/", unstored)?.code == .truncated)
        #expect(place.partials.isEmpty)
        #expect(await place.failure()?.code == .truncated)
        #expect(await place.failure("/", unstored)?.code == .truncated)
        #expect(place.server.requests.allSatisfy { $0["Range"] == nil })
        #expect(place.partials.count == 1)
    }

    @Test func `a 304 leaves the partial download of another state of the body`() async throws {
        let body = noise(count: 1_000_000, seed: 3)
        let count = Locked(0)
        let place = try FetchFixture { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 2 {
                return WebServer.Answer(200, ["ETag: \"new\""], body, cut: 400_000)
            }
            return .resource(request, Data("a".utf8), tag: "old", ["Cache-Control: max-age=1"])
        }
        _ = try await place.fetch()
        place.clock.advance(by: 2)
        #expect(await place.failure()?.code == .truncated)
        let response = try await place.fetch()
        #expect(response.text == "a" && response.cacheStatus.forwardStatus == 304)
        #expect(place.server.requests.last?["Range"] != nil)
    }

    @Test(arguments: [401, 403, 500])
    func `an error response leaves the partial download intact and is not stored`(status: Int) async throws {
        let body = noise(count: 1_000_000, seed: 3)
        let place = try FetchFixture { request in
            var answer = WebServer.Answer.resource(request, body, tag: "1", ["Cache-Control: max-age=60"])
            if request["Range"] == nil { answer.cut = 400_000 }
            if request["DNT"] != nil {
                answer = WebServer.Answer(status, ["Cache-Control: max-age=60"], Data("no".utf8))
            }
            return answer
        }
        #expect(await place.failure()?.code == .truncated)
        let refused = try await place.fetch { $0.fields = [("DNT", "1")] }
        #expect(refused.status == status && refused.body.count <= 2 && !refused.cacheStatus.isStored)
        #expect(place.partials.count == 1)
        #expect(try await place.fetch().body == body)
        #expect(place.server.requests.map { $0["Range"] } == [nil, "bytes=400000-", "bytes=400000-"])
        #expect(place.partials.isEmpty)
    }

    @Test func `a retry within one fetch resumes the download`() async throws {
        let body = noise(count: 300_000, seed: 4)
        let place = try FetchFixture { request in
            var answer = WebServer.Answer.resource(request, body, tag: "1", ["Cache-Control: max-age=60"])
            answer.cut = 150_000
            return answer
        }
        #expect(try await place.fetch { $0.retries = 2 }.body == body)
        #expect(place.server.requests.map { $0["Range"] } == [nil, "bytes=150000-"])
    }

    @Test func `a body that has changed is downloaded from the start`() async throws {
        let place = try FetchFixture { request in
            let isFirst = request["Range"] == nil
            let body = noise(count: 200_000, seed: isFirst ? 5 : 6)
            let fields = ["Cache-Control: max-age=60"]
            var answer = WebServer.Answer.resource(request, body, tag: isFirst ? "1" : "2", fields)
            if isFirst { answer.cut = 100_000 }
            return answer
        }
        _ = await place.failure()
        #expect(try await place.fetch().body == noise(count: 200_000, seed: 6))
    }

    @Test func `without a strong validator a download is not resumed`() async throws {
        let place = try FetchFixture { request in
            let cut = request["DNT"] == nil ? 9 : nil
            return WebServer.Answer(200, ["Cache-Control: max-age=60"], Data(count: 100_000), cut: cut)
        }
        #expect(await place.failure()?.code == .truncated)
        let response = try await place.fetch { $0.fields = [("DNT", "1")] }
        #expect(response.length == 100_000)
        #expect(place.server.requests.allSatisfy { $0["Range"] == nil })
    }

    @Test func `on an error a stale response is returned within its allowance`() async throws {
        let place = try FetchFixture { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60, stale-if-error=100"], Data("a".utf8))
        }
        _ = try await place.fetch()
        place.server.stop()
        place.clock.advance(by: 150)
        let stale = try await place.fetch()
        #expect(stale.text == "a" && stale.cacheStatus.detail == "stale-if-error:unreachable")
        #expect((stale.cacheStatus.timeToLive ?? 0) < 0)
        place.clock.advance(by: 20)
        #expect(await place.failure()?.code == .unreachable)
        #expect(try await place.fetch { $0.staleIfError = .seconds(3600) }.text == "a")
        #expect(await place.failure { $0.staleIfError = .zero }?.code == .unreachable)
    }

    @Test func `a reload ignores the response's stale-if-error, but not the caller's allowance`() async throws
    {
        let place = try FetchFixture { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60, stale-if-error=100"], Data("a".utf8))
        }
        _ = try await place.fetch()
        place.server.stop()
        #expect(await place.failure { $0.mode = .reload }?.code == .unreachable)
        #expect(await place.failure { $0.fields = [("Cache-Control", "no-cache")] }?.code == .unreachable)
        let own = try await place.fetch {
            $0.mode = .reload
            $0.staleIfError = .seconds(9)
        }
        #expect(own.text == "a")
    }

    @Test func `a transient status is retried after the server's Retry-After`() async throws {
        let count = Locked(0)
        let place = try FetchFixture { _ in
            let number = count.withLock {
                $0 += 1
                return $0
            }
            return number < 3
                ? WebServer.Answer(503, ["Retry-After: 0"]) : WebServer.Answer(200, [], Data("a".utf8))
        }
        #expect(try await place.fetch { $0.retries = 2 }.text == "a")
        #expect(place.server.requests.count == 3)
    }

    @Test func `a stale response is returned at once and revalidated in the background`() async throws {
        let place = try FetchFixture {
            let control = "Cache-Control: max-age=60, stale-while-revalidate=60"
            return WebServer.Answer.resource($0, Data("a".utf8), tag: "1", [control])
        }
        _ = try await place.fetch()
        place.clock.advance(by: 70)
        let stale = try await place.fetch()
        #expect(stale.text == "a" && stale.cacheStatus.isHit && stale.cacheStatus.detail == "stale")
        await place.http.settle()
        #expect(place.server.requests.count == 2)
        #expect(try await place.fetch().cacheStatus.detail == nil)
    }

    @Test func `a partial download too large for one caller is resumed by another`() async throws {
        let body = noise(count: 1_000_000, seed: 3)
        let place = try FetchFixture { request in
            var answer = WebServer.Answer.resource(request, body, tag: "1", ["Cache-Control: max-age=60"])
            if request["Range"] == nil { answer.cut = 400_000 }
            return answer
        }
        #expect(await place.failure()?.code == .truncated)
        #expect(await place.failure { $0.maximumSize = 1000 }?.code == .tooLarge)
        #expect(try await place.fetch().body == body)
        #expect(place.server.requests.last?["Range"] == "bytes=400000-")
    }

    @Test func `each violation results in a specific error, and nothing is stored`() async throws {
        let place = try FetchFixture { request in
            switch request.path {
            case "/circle": WebServer.Answer(302, ["Location: /circle"])
            case "/file": WebServer.Answer(302, ["Location: file:///etc/passwd"])
            default: WebServer.Answer(200, ["Cache-Control: max-age=9", "ETag: \"1\""], Data(count: 1000))
            }
        }
        #expect(await place.failure("/circle")?.code == .tooManyRedirects)
        #expect(await place.failure("/file")?.code == .unsupportedRedirect)
        #expect(await place.failure("/long") { $0.maximumSize = 999 }?.code == .tooLarge)
        #expect(await place.failure("/") { $0.url = "ftp://a/" }?.code == .invalidURL)
        #expect(await place.failure("/") { $0.method = "A B" }?.code == .invalidRequest)
        #expect(place.directory.files(below: "cache/objects").isEmpty && place.partials.isEmpty)
    }

    @Test func `no error message contains secrets`() async throws {
        let place = try FetchFixture { _ in WebServer.Answer() }
        place.server.stop()
        let error = await place.failure {
            $0.url = $0.url.replacingOccurrences(of: "http://", with: "http://me:pAss@") + "?token=tOken1"
        }
        let text = try #require(error).message
        #expect(!text.contains("pAss") && !text.contains("tOken1") && text.contains("127.0.0.1"))
    }

    @Test func `a cancelled task ends at once`() async throws {
        let gate = Gate()
        let place = try FetchFixture { _ in
            gate.wait()
            return WebServer.Answer()
        }
        defer { gate.open() }
        let request = place.request()
        let task = Task { [http = place.http] in try await http.fetch(request) }
        await waitUntil("it is asked") { place.server.requests.count == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a time limit is enforced`() async throws {
        let gate = Gate()
        let place = try FetchFixture { _ in
            gate.wait()
            return WebServer.Answer()
        }
        defer { gate.open() }
        #expect(await place.failure { $0.timeLimit = .milliseconds(50) }?.code == .timedOut)
    }
}
