// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Concurrent fetches of the same response.
@Suite(.takesTurns) struct FetchTogetherTests {
    /// Starts `count` concurrent fetches of the same response and returns the successful ones.
    private func crowd(
        _ place: FetchFixture,
        _ count: Int,
        _ gate: Gate,
        _ change: (inout FetchRequest) -> Void = { _ in }
    ) async throws -> [FetchResponse] {
        let earlier = place.server.requests.count
        return await withThrowingTaskGroup(of: FetchResponse.self) { group in
            for _ in 0..<count {
                let request = place.request("/", change)
                group.addTask { [http = place.http] in try await http.fetch(request) }
            }
            group.addTask { [server = place.server, cache = place.cache] in
                // All but the leader wait.
                await waitUntil("they have come together") {
                    server.requests.count == earlier + 1 && cache.directory.activity.waits >= count - 1
                }
                gate.open()
                throw CancellationError()
            }
            var responses: [FetchResponse] = []
            while let result = await group.nextResult() {
                if case .success(let response) = result { responses.append(response) }
            }
            return responses
        }
    }

    @Test func `concurrent fetches share one request`() async throws {
        let gate = Gate()
        let place = try FetchFixture { _ in
            gate.wait()
            return WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("a".utf8))
        }
        let responses = try await crowd(place, 16, gate)
        #expect(responses.map(\.text) == Array(repeating: "a", count: 16))
        #expect(place.server.requests.count == 1)
        #expect(responses.filter { $0.cacheStatus.forwardStatus == 200 }.count == 1)
    }

    @Test func `concurrent fetches share a response that is stale on arrival`() async throws {
        let gate = Gate()
        let place = try FetchFixture { _ in
            gate.wait()
            return WebServer.Answer(200, ["Cache-Control: max-age=0", "ETag: \"1\""], Data("a".utf8))
        }
        let responses = try await crowd(place, 8, gate)
        #expect(responses.count == 8 && place.server.requests.count == 1)
        #expect(responses.filter(\.cacheStatus.isCollapsed).count == 7)
    }

    @Test func `concurrent fetches of a no-store response send one request each`() async throws {
        let gate = Gate()
        let place = try FetchFixture { _ in
            gate.wait()
            return WebServer.Answer(200, ["Cache-Control: no-store"], Data("a".utf8))
        }
        let responses = try await crowd(place, 4, gate)
        #expect(responses.count == 4 && place.server.requests.count == 4)
    }

    @Test func `concurrent fetches share an error`() async throws {
        let gate = Gate()
        let place = try FetchFixture { _ in
            gate.wait()
            return WebServer.Answer(200, [], Data(count: 10), cut: 5)
        }
        #expect(try await crowd(place, 8, gate).isEmpty)
        #expect(place.server.requests.count == 1)
    }

    @Test func `concurrent fetches with a time limit share an error`() async throws {
        let gate = Gate()
        let place = try FetchFixture { _ in
            gate.wait()
            return WebServer.Answer(200, [], Data(count: 10), cut: 5)
        }
        #expect(try await crowd(place, 8, gate) { $0.timeLimit = .seconds(3600) }.isEmpty)
        #expect(place.server.requests.count == 1)
    }

    @Test(arguments: [200, 503])
    func `concurrent fetches share an error that a stale response replaces`(status: Int) async throws {
        let gate = Gate()
        let place = try FetchFixture { request in
            if request.path == "/" && request["If-None-Match"] == nil {
                return WebServer.Answer(200, ["Cache-Control: max-age=60", "ETag: \"1\""], Data("a".utf8))
            }
            gate.wait()
            return WebServer.Answer(status, [], Data(count: 10), cut: status == 200 ? 5 : nil)
        }
        _ = try await place.fetch()
        place.clock.advance(by: 120)
        let responses = try await crowd(place, 8, gate) { $0.staleIfError = .seconds(3600) }
        #expect(responses.map(\.text) == Array(repeating: "a", count: 8))
        #expect(Set(responses.map { "\($0.cacheStatus)" }).count == 1)
        #expect(place.server.requests.count == 2)
    }

    @Test func `a caller that accepts no stale response retries although another one got one`() async throws {
        let gate = Gate()
        let place = try FetchFixture { request in
            let fields = ["Cache-Control: max-age=60", "ETag: \"1\""]
            if request["If-None-Match"] == nil { return WebServer.Answer(200, fields, Data("a".utf8)) }
            gate.wait()
            let isFirst = request["User-Agent"] == "1"
            return WebServer.Answer(200, fields, Data("new".utf8), cut: isFirst ? 1 : nil)
        }
        _ = try await place.fetch()
        place.clock.advance(by: 120)
        async let first = place.fetch {
            $0.staleIfError = .seconds(3600)
            $0.fields = [("User-Agent", "1")]
        }
        await waitUntil("the first asks") { place.server.requests.count == 2 }
        async let second = place.fetch {
            $0.staleIfError = .zero
            $0.fields = [("User-Agent", "2")]
        }
        await waitUntil("the second waits") { place.cache.directory.activity.waits >= 1 }
        gate.open()
        let texts = try await [first.text, second.text]
        #expect(texts == ["a", "new"])
    }

    @Test func `a no-store response that one caller stores is not for those who wait with it`() async throws {
        let gate = Gate()
        let count = Locked(0)
        let place = try FetchFixture { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { gate.wait() }
            return WebServer.Answer(200, ["Cache-Control: no-store"], Data("\(number)".utf8))
        }
        async let first = place.fetch { $0.timeToLive = .seconds(60) }
        await waitUntil("the first asks") { place.server.requests.count == 1 }
        async let second = place.fetch()
        await waitUntil("the second waits") { place.cache.directory.activity.waits >= 1 }
        gate.open()
        let responses = try await [first, second]
        #expect(responses.map(\.text) == ["1", "2"])
        #expect(responses.map(\.cacheStatus.isStored) == [true, false])
    }

    static let limits: [(String, @Sendable (inout FetchRequest) -> Void, FetchError.Code)] = [
        ("bytes", { $0.maximumSize = 10 }, .tooLarge),
        ("time", { $0.timeLimit = .milliseconds(300) }, .timedOut),
        ("stall", { $0.stallLimit = .milliseconds(300) }, .timedOut),
        ("digest", { $0.digest = "sha256:" + String(repeating: "0", count: 64) }, .digestMismatch),
        ("retries", { $0.retries = 0 }, .truncated),
    ]

    @Test(arguments: limits) func `one caller's limits fail no other caller`(
        name: String,
        change: @Sendable (inout FetchRequest) -> Void,
        code: FetchError.Code
    ) async throws {
        let gate = Gate()
        defer { gate.open() }
        let count = Locked(0)
        let place = try FetchFixture { _ in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            if isFirst { gate.wait() }
            let body = Data(count: 1000)
            let cut = isFirst && code == .truncated ? 100 : nil
            return WebServer.Answer(200, ["Cache-Control: max-age=60"], body, cut: cut)
        }
        async let first = place.failure("/", change)
        await waitUntil("the first asks") { place.server.requests.count == 1 }
        let request = place.request { $0.retries = 2 }
        let others = (0..<2).map { _ in Task { [http = place.http] in try await http.fetch(request) } }
        if code != .timedOut {
            await waitUntil("the others wait") { place.cache.directory.activity.waits >= 2 }
            gate.open()
        }
        #expect(await first?.code == code)
        for other in others { #expect(try await other.value.length == 1000) }
        #expect(place.server.requests.count == 2)
    }

    @Test func `an error is shared only if others would get it, too`() throws {
        func terms(
            _ code: FetchError.Code,
            _ limit: Duration? = nil,
            isCutShort: Bool = false
        ) throws -> String? {
            var request = FetchRequest("http://a/")
            request.timeLimit = limit
            var error = FetchError(code, "")
            error.isCutShort = isCutShort
            return try FetchLimits(request, HTTPCacheOptions()).terms(sharing: error)
        }
        #expect(try terms(.unreachable) != nil && terms(.tls) != nil)
        // A field that can't be sent.
        #expect(try terms(.invalidRequest) == nil)
        // There was no time for the retries.
        #expect(try terms(.unreachable, .seconds(3600), isCutShort: true) == nil)
        #expect(try terms(.unreachable, .seconds(3600)) != nil)
        #expect(try terms(.tls, .zero) == nil)
    }

    @Test func `a cancelled caller fails no other caller`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let count = Locked(0)
        let place = try FetchFixture { _ in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            if isFirst { gate.wait() }
            return WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("a".utf8))
        }
        let request = place.request()
        let first = Task { [http = place.http] in try await http.fetch(request) }
        await waitUntil("the first asks") { place.server.requests.count == 1 }
        async let second = place.fetch()
        await waitUntil("the other waits") { place.cache.directory.activity.waits >= 1 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(try await second.text == "a")
    }

    @Test func `a waiter for a stalled download sends its own request`() async throws {
        let gate = Gate()
        let count = Locked(0)
        let place = try FetchFixture { _ in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            if isFirst { gate.wait() }
            return WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("a".utf8))
        }
        async let first = place.fetch()
        await waitUntil("the first asks") { place.server.requests.count == 1 }
        // A second cache, as in another process.
        let other = HTTPCache(
            try SharedCache(at: place.cache.directory.path),
            options: place.http.context.options
        )
        let second = try await other.fetch(place.request { $0.stallLimit = .milliseconds(100) })
        #expect(second.text == "a" && place.server.requests.count == 2)
        gate.open()
        #expect(try await first.text == "a")
    }

    @Test func `a time limit is enforced while a request waits for its host`() async throws {
        let gate = Gate()
        defer { gate.open() }
        var options = HTTPCacheOptions()
        options.requestsPerHost = 1
        let place = try FetchFixture(options: options) { _ in
            gate.wait()
            return WebServer.Answer(200, [], Data("a".utf8))
        }
        async let first = place.fetch("/a")
        await waitUntil("the first asks") { place.server.requests.count == 1 }
        let failure = Locked<FetchError?>(nil)
        let request = place.request("/b") { $0.timeLimit = .milliseconds(100) }
        let second = Task { [http = place.http] in
            do {
                _ = try await http.fetch(request)
            } catch {
                failure.withLock { $0 = error as? FetchError }
            }
        }
        await waitUntil("the second has given up") { failure.withLock { $0 != nil } }
        #expect(failure.withLock { $0 }?.code == .timedOut)
        gate.open()
        await second.value
        #expect(try await first.text == "a" && place.server.requests.count == 1)
    }
}

/// Blocks waiters until it is opened.
final class Gate: Sendable {
    private let isOpen = Monitored(false)

    func wait() {
        let done: Bool? = isOpen.wait { $0 ? true : nil }
        _ = done
    }

    func open() {
        isOpen.withLock { $0 = true }
        isOpen.wakeAll()
    }
}
