// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Each call of the article "Coming from other caches".
@Suite(.takesTurns) struct ComingFromOthersTests {
    private struct Picture: Codable, Sendable, Equatable {
        var pixels: [Int]
    }

    private let directory: TemporaryDirectory
    private let cache: SharedCache
    private let key = "key"
    private let data = Data("value".utf8)

    init() throws {
        directory = try TemporaryDirectory()
        cache = try SharedCache(at: directory.path + "/cache")
    }

    @Test func `from Kingfisher`() async throws {
        let (view, picture) = (cache.typed(Picture.self), Picture(pixels: [1]))
        let options = PutOptions(expires: .days(7), onAccess: .renew)
        let cached = ReadOptions(source: .cache)
        #expect(try await view.hit(forKey: key, reading: cached) { _ in .value(Picture(pixels: [])) } == nil)
        try await view.put(picture, forKey: key, options: options)
        #expect(try await view.get(forKey: key)?.value == picture)
        let hit = try await view.get(forKey: key, reading: ReadOptions(source: .memory))
        #expect(hit?.source == .memory)
        let fresh = try await view.hit(forKey: key, reading: ReadOptions(recomputes: true)) { _ in
            .value(Picture(pixels: [2]))
        }
        #expect(fresh?.value.pixels == [2] && fresh?.source == .computed)
        #expect(try await cache.blocking { [key] in try $0.contains(forKey: key) })
        var expired = CollectionOptions()
        expired.expiredOnly = true
        let chosen = expired
        _ = try await cache.blocking { try $0.directory.collect(chosen) }
        #expect(try await view.get(forKey: key) != nil)
    }

    @Test func `from Nuke`() async throws {
        let data = data
        try await cache.put(data, forKey: key)
        #expect(try await cache.get(forKey: key)?.value == data)
        #expect(try await cache.entry(forKey: key) != nil)
        let kind = cache.namespace("kind/", options: PutOptions(expires: .days(7)))
        #expect(try await kind.get(forKey: key) == nil)
        let cached = ReadOptions(source: .cache)
        #expect(try await cache.hit(forKey: key, reading: cached) { _ in .unkept(Data()) }?.value == data)
        let fresh = await cache.value(forKey: key, reading: ReadOptions(recomputes: true)) { data + data }
        #expect(fresh == data + data)
        #expect(await cache.flush())
        #expect(try await cache.remove(forKey: key))
    }

    @Test func `from NSCache`() async throws {
        let view = cache.typed(Picture.self)
        try await view.put(Picture(pixels: [1]), forKey: key)
        #expect(try await view.get(forKey: key)?.value.pixels == [1])
        cache.memory.resize(costLimit: .bytes(1000), countLimit: 10)
        #expect(cache.memory.count <= 10)
    }

    @Test func `from python-diskcache`() async throws {
        let data = data
        try await cache.put(data, forKey: key, options: PutOptions(expires: .seconds(500), tags: ["t"]))
        let entry = try await cache.get(forKey: key)?.entry
        #expect(entry?.tags == ["t"] && entry?.expires != nil)
        #expect(try await cache.blocking { [key] in try $0.putIfAbsent(data, forKey: key) } == false)
        #expect(try await cache.blocking { [key] in try $0.setExpiration(.seconds(5000), forKey: key) })
        let value = await cache.value(forKey: key, reading: ReadOptions(earlyRefresh: 1)) { data }
        #expect(value == data)
        try await cache.blocking { try $0.removeAll(.tagged("t")) }
        #expect(try await cache.get(forKey: key) == nil)
        #expect(try await cache.increment(forKey: "count") == 1)
        let held = try await cache.lock("name", permits: 3).whileHeld { 1 }
        #expect(held == 1)
        let terms = PutOptions(expires: .seconds(5))
        let double = cache.memoized("double", of: Int.self, options: terms) { _ in data + data }
        #expect(try await double(1) == data + data)
    }

    @Test func `from cachified`() async throws {
        let data = data
        let reading = ReadOptions(staleWhileRevalidate: .seconds(60), staleIfError: .seconds(60))
        let options = PutOptions(expires: .seconds(500))
        #expect(await cache.value(forKey: key, options: options, reading: reading) { data } == data)
        let hit = try await cache.hit(forKey: "other") { computation in
            if computation.reason == .stale { return .unkept(data) }
            return .value(data, PutOptions(expires: .seconds(500)))
        }
        #expect(hit?.value == data)
        let values = try await cache.values(forKeys: [key, "third"]) { missing in
            Dictionary(uniqueKeysWithValues: missing.map { ($0, Data($0.utf8)) })
        }
        #expect(values == [key: data, "third": Data("third".utf8)])
    }
}
