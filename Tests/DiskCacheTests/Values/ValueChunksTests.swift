// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct ValueChunksTests {
    private let fixture: CacheFixture
    private let bytes = Data(SeededGenerator.bytes(700_001, seed: 13))
    private var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try CacheFixture()
    }

    private func object(_ key: String) async throws -> String {
        let entry = try await cache.entry(forKey: key)
        return try cache.path + "/" + #require(entry).path
    }

    @Test(arguments: [1000, 256 * 1024, 700_000, 700_001, 1_000_000])
    func `the chunks make up the value on each iteration`(size: Int) async throws {
        try await cache.put(bytes, forKey: "key")
        guard let chunks = try await cache.chunks(forKey: "key", size: size) else {
            Issue.record("a miss")
            return
        }
        for _ in 0..<2 {
            var whole = Data()
            var sizes: [Int] = []
            for try await chunk in chunks {
                whole += chunk
                sizes.append(chunk.count)
            }
            #expect(whole == bytes)
            #expect(sizes.dropLast().allSatisfy { $0 == size })
            #expect(sizes.count == (bytes.count + size - 1) / size)
        }
    }

    @Test func `chunks stay the same if the key changes meanwhile`() async throws {
        try await cache.put(bytes, forKey: "key")
        guard let chunks = try await cache.chunks(forKey: "key", size: 100_000) else {
            Issue.record("a miss")
            return
        }
        var whole = Data()
        for try await chunk in chunks {
            if whole.isEmpty {
                try await cache.put(Data("other".utf8), forKey: "key")
                _ = try await cache.blocking { try $0.directory.collect() }
            }
            whole += chunk
        }
        #expect(whole == bytes)
    }

    @Test func `a miss and a damaged value are nil, and an empty value has no chunks`() async throws {
        #expect(try await cache.chunks(forKey: "absent") == nil)
        try await cache.put(bytes, forKey: "damaged")
        let path = try await object("damaged")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        let file = try #require(FileHandle(forWritingAtPath: path))
        try file.write(contentsOf: Data([bytes[0] ^ 1]))
        try file.close()
        #expect(try await cache.chunks(forKey: "damaged") == nil)
        try await cache.put(Data(), forKey: "empty")
        guard let chunks = try await cache.chunks(forKey: "empty") else {
            Issue.record("a miss")
            return
        }
        for try await chunk in chunks { Issue.record("\(chunk) of nothing") }
    }

    @Test func `stale chunks are returned only on request`() async throws {
        let options = PutOptions(expires: .seconds(10), staleFor: .seconds(10))
        try await cache.put(bytes, forKey: "key", options: options)
        fixture.clock.advance(by: 11)
        #expect(try await cache.chunks(forKey: "key") == nil)
        #expect(try await cache.chunks(forKey: "key", reading: ReadOptions(acceptsStale: true)) != nil)
    }

    @Test func `a pending value is found`() async throws {
        try await cache.put(bytes, forKey: "key", options: PutOptions(writing: .behind))
        #expect(try await cache.chunks(forKey: "key") != nil)
    }

    @Test func `a cancelled task gets an error, not a part of the value`() async throws {
        try await cache.put(bytes, forKey: "key")
        guard let chunks = try await cache.chunks(forKey: "key", size: 1000) else {
            Issue.record("a miss")
            return
        }
        // In asynchronous code the compiler would select the asynchronous overload of `withUnsafeCurrentTask`.
        @Sendable func cancelOwnTask() { withUnsafeCurrentTask { $0?.cancel() } }
        let reading = Task {
            var count = 0
            for try await _ in chunks {
                count += 1
                if count == 3 { cancelOwnTask() }
            }
            return count
        }
        await #expect(throws: CancellationError.self) { try await reading.value }
    }

    @Test func `a truncated file is an error`() async throws {
        try await cache.put(bytes, forKey: "key")
        let path = try await object("key")
        guard let chunks = try await cache.chunks(forKey: "key", size: 1000) else {
            Issue.record("a miss")
            return
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        let file = try #require(FileHandle(forWritingAtPath: path))
        var length = 0
        do {
            for try await chunk in chunks {
                length += chunk.count
                if length == 2000 { try file.truncate(atOffset: 3500) }
            }
            Issue.record("it ended after \(length) bytes")
        } catch {
            #expect((error as? CacheError)?.code == .inputOutput)
            #expect(length == 3000)
        }
    }

    @Test(arguments: [0, -1]) func `a chunk size below 1 or an empty key is refused`(size: Int) async throws {
        await #expect(throws: CacheError.self) { _ = try await cache.chunks(forKey: "key", size: size) }
        await #expect(throws: CacheError.self) { _ = try await cache.chunks(forKey: "") }
    }
}
