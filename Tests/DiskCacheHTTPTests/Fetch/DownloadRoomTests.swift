// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Downloads and the size limits of their directory.
@Suite(.takesTurns) struct DownloadRoomTests {
    /// The size limit of the directory; the cache's own files take 6 MiB of it.
    static let limit: Int64 = 24 << 20

    private func place(
        limit: Int64? = Self.limit,
        _ answer: @escaping @Sendable (WebServer.Request) -> WebServer.Answer
    ) throws -> FetchFixture {
        let place = try FetchFixture(answer)
        if let limit { try place.cache.directory.updateLimits { $0.maximumSize = ByteCount(limit) } }
        return place
    }

    private func allow(_ length: Int64, in place: FetchFixture) throws {
        try place.cache.directory.updateLimits { $0.maximumValueSize = ByteCount(length) }
    }

    /// The allocated size of all named files in bytes.
    private func size(_ place: FetchFixture) throws -> Int64 {
        let root = place.directory.path + "/cache/"
        var size: Int64 = 0
        for file in place.directory.files(below: "cache") {
            do throws(Errno) {
                size += try FileStatus.of(root + file).allocatedSize
            } catch {
                // The janitor deleted it in the meantime.
                guard error == .noEntry else { throw error }
            }
        }
        return size
    }

    private static func cut(_ path: String, sent: Int, of total: String) -> WebServer.Answer {
        .raw(
            ["HTTP/1.1 200 OK", "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Length: \(total)"],
            noise(count: sent, seed: UInt64(path.utf8.count))
        )
    }

    @Test func `interrupted downloads stay below the limit, and one collection removes them all`()
        async throws
    {
        let place = try place { Self.cut($0.path, sent: 2 << 20, of: "4194304") }
        for number in 0..<12 {
            #expect(await place.failure("/\(number)")?.code == .truncated)
            #expect(try size(place) <= Self.limit * 21 / 20)
        }
        #expect(place.partials.count < 12)
        let report = try await place.cache.blocking { try $0.directory.collect() }
        #expect(report.isComplete)
        #expect(place.partials.isEmpty)
    }

    @Test(arguments: ["1125899906842624", "9223372036854775807"])
    func `a response that no disk can hold fails at once and evicts nothing`(
        length: String
    ) async throws {
        for limit in [nil, Self.limit] {
            let place = try place(limit: limit) { Self.cut($0.path, sent: 1 << 20, of: length) }
            try await place.cache.put(Data(count: 6 << 20), forKey: "a")
            let failure = await place.failure()
            #expect(failure?.code == .noSpace)
            #expect(place.partials.isEmpty)
            #expect(try await place.cache.get(forKey: "a") != nil)
            #expect(place.server.requests.count == 1)
        }
    }

    @Test(arguments: [false, true])
    func `a body over the value size limit is returned but not stored, and evicts nothing`(
        isChunked: Bool
    ) async throws {
        let body = noise(count: 5 << 20, seed: 1)
        let place = try place { _ in
            if !isChunked {
                return WebServer.Answer(200, ["Cache-Control: max-age=60", "ETag: \"a\""], body)
            }
            return .raw(["HTTP/1.1 200 OK", "Cache-Control: max-age=60", "ETag: \"a\""], body)
        }
        try allow(4 << 20, in: place)
        try await place.cache.put(Data(count: 1 << 20), forKey: "a")
        let response = try await place.fetch()
        #expect(response.body == body && !response.cacheStatus.isStored)
        #expect(place.partials.isEmpty)
        #expect(try await place.cache.get(forKey: "a") != nil)
        #expect(try size(place) <= Self.limit)
    }

    @Test(arguments: ["Cache-Control: no-store", "Vary: *"])
    func `a response that may not be stored evicts nothing and has no name`(field: String) async throws {
        let body = noise(count: 16 << 20, seed: 2)
        let gate = Gate()
        let place = try place { request in
            if request.path == "/slow" { gate.wait() }
            return WebServer.Answer(200, [field, "ETag: \"a\""], body)
        }
        try await place.cache.put(Data(count: 8 << 20), forKey: "a")
        #expect(try await place.fetch().body == body)
        // Not from the memory of this process.
        let other = try SharedCache(at: place.cache.path)
        #expect(try await other.get(forKey: "a") != nil)
        async let cut = place.failure("/slow") { $0.maximumSize = 1 << 20 }
        gate.open()
        #expect(await cut?.code == .tooLarge)
        #expect(place.partials.isEmpty)
    }

    @Test(arguments: [206, 302, 404, 500])
    func `a long body that may not be stored loses its name, a short one is counted`(status: Int) throws {
        let place = try place { _ in WebServer.Answer() }
        let terms = Download.Terms(
            policy: HTTPCachePolicy(),
            request: try HTTPRequest(place.request()),
            hasher: CredentialHasher(key: Data()),
            mostBytes: .max
        )
        let download = try Download(try place.cache.partialFile(forKey: "k"), in: place.cache, terms)
        let now = HTTPDate(seconds: 1_700_000_000)
        #expect(try download.prepare(terms.request).lines.isEmpty)
        let before = try size(place)
        func used() throws -> Int64? { try place.cache.directory.totals()?.usage.bytes }
        let usedBefore = try #require(try used())
        let response = HTTPResponse(status, ["Cache-Control": "no-store"])
        _ = download.disposition(response, requested: now, now: now)
        #expect(place.partials.count == 1)
        #expect(try used() == usedBefore + 1 << 20)
        #expect(download.mayGrow(2 << 20))
        #expect(place.partials.isEmpty && download.partial == nil)
        #expect(try used() == usedBefore)
        #expect(try size(place) == before)
    }

    @Test func `the rest of a body that may no longer be stored evicts nothing`() async throws {
        let body = noise(count: 16 << 20, seed: 2)
        let place = try place { request in
            if request["Range"] == nil { return Self.cut("", sent: 1 << 20, of: "16777216") }
            return WebServer.Answer.resource(request, body, tag: "a", ["Cache-Control: no-store"])
        }
        #expect(await place.failure()?.code == .truncated)
        try await place.cache.put(Data(count: 8 << 20), forKey: "a")
        let response = try await place.fetch()
        #expect(response.length == 16 << 20 && !response.cacheStatus.isStored)
        #expect(place.partials.isEmpty)
        // Not from the memory of this process.
        #expect(try await SharedCache(at: place.cache.path).get(forKey: "a") != nil)
    }

    @Test func `after an error that may not be stored a retry is stored`() async throws {
        let count = Locked(0)
        let place = try place { _ in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            if isFirst { return WebServer.Answer(503, ["Retry-After: 0"], Data("busy".utf8)) }
            return WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("a".utf8))
        }
        let response = try await place.fetch { $0.retries = 2 }
        #expect(response.text == "a" && response.cacheStatus.isStored)
    }

    @Test func `concurrent downloads together stay below the limit`() throws {
        let place = try place { _ in WebServer.Answer() }
        let cache = place.cache
        let request = try HTTPRequest(place.request())
        let terms = Download.Terms(
            policy: HTTPCachePolicy(),
            request: request,
            hasher: CredentialHasher(key: Data()),
            mostBytes: .max
        )
        let now = HTTPDate(seconds: 1_700_000_000)
        let piece = noise(count: 4 << 20, seed: 3)
        let fields: HTTPFields = [
            "Content-Length": "8388608", "ETag": "\"a\"", "Cache-Control": "max-age=60",
        ]
        let downloads = try (0..<6).map { number in
            let download = try Download(try cache.partialFile(forKey: "\(number)"), in: cache, terms)
            #expect(try download.prepare(request).lines.isEmpty)
            let disposition = download.disposition(HTTPResponse(200, fields), requested: now, now: now)
            guard case .keepUpTo(8_388_608) = disposition else {
                Issue.record("it is refused: \(disposition)")
                return download
            }
            for received in 1...32 {
                let bytes = [UInt8](piece.prefix(128 << 10))
                try FileDescriptor.borrowing(download.number) { (file) throws(Errno) in
                    try file.writeAll(bytes.span)
                }
                #expect(download.mayGrow(Int64(received) * 128 << 10))
                if received % 8 == 0 { #expect(try size(place) <= Self.limit * 21 / 20) }
            }
            return download
        }
        #expect(downloads.contains { $0.partial != nil } && downloads.contains { $0.partial == nil })
        for download in downloads {
            #expect(try download.length == 4 << 20)
            download.abandon()
        }
    }

    @Test func `an interrupted download is counted and kept until the next full collection`() async throws {
        let place = try place(limit: 64 << 20) { request in
            let body = noise(count: 3 << 20, seed: 2)
            if request["Range"] == nil { return Self.cut("", sent: 1 << 20, of: "3145728") }
            return WebServer.Answer.resource(request, body, tag: "a", ["Cache-Control: max-age=60"])
        }
        var options = CollectionOptions()
        options.expiredOnly = true
        func drift() async throws -> Int64? {
            try await place.cache.blocking { [options] in try $0.directory.collect(options) }.drift?.bytes
        }
        _ = try await drift()
        for _ in 0..<2 {
            #expect(await place.failure()?.code == .truncated)
            #expect(try await drift() == 0)
            #expect(place.partials.count == 1)
            try await place.cache.blocking { _ = try $0.directory.collect() }
            #expect(place.partials.isEmpty)
            #expect(try await drift() == 0)
        }
        #expect(await place.failure()?.code == .truncated)
        #expect(try await place.fetch().length == 3 << 20)
        // One or two blocks for the entries and the files beside them.
        #expect(abs(try await drift() ?? 0) < 1 << 20)
    }
}
