// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

/// The lines of the article "Coming from other caches" about caches of Swift programs.
///
/// The lines about other languages have separate suites.
@Suite(.takesTurns) struct ComingFromOthersTests {
    private struct Picture: Codable, Sendable, Equatable {
        var pixels: [Int]
    }

    private let directory: TemporaryDirectory
    private let cache: SharedCache
    private let key = "key"
    private let data = Data("value".utf8)
    private let picture = Picture(pixels: [1])

    init() throws {
        directory = try TemporaryDirectory()
        cache = try SharedCache(at: directory.path + "/cache")
    }

    // MARK: Kingfisher

    @Test func `from Kingfisher`() async throws {
        let (view, picture) = (cache.typed(Picture.self), picture)
        let absent = try await view.hit(forKey: key, reading: ReadOptions(source: .cache)) { _ in
            .value(picture)
        }
        #expect(absent == nil)
        try await view.put(picture, forKey: key)
        #expect(try await view.get(forKey: key)?.value == picture)
        #expect(try await view.get(forKey: key, reading: ReadOptions(source: .memory)) != nil)
        #expect(try await cache.entry(forKey: key) != nil)
        let path = try await cache.entry(forKey: key)?.path
        #expect(FileManager.default.fileExists(atPath: directory.path + "/cache/" + (path ?? "none")))
        let fresh = try await view.hit(forKey: key, reading: ReadOptions(recomputes: true)) { _ in
            .value(Picture(pixels: [2]))
        }
        #expect(fresh?.value.pixels == [2] && fresh?.source == .computed)
        cache.memory.removeAll()
        #expect(try await view.get(forKey: key)?.source == .disk)
        #expect(try await view.remove(forKey: key))
        try await view.put(picture, forKey: key, options: PutOptions(keeps: .memoryOnly))
        #expect(try await cache.entry(forKey: key) == nil)
        #expect(try await view.get(forKey: key)?.source == .memory)
        #expect(try await cache.namespace("pictures/").typed(Picture.self).get(forKey: key) == nil)
    }

    @Test func `from Kingfisher: expiration`() throws {
        var configuration = CacheConfiguration()
        configuration.defaultExpiration = .days(7)
        configuration.memory.lifetime = .seconds(300)
        let cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        let renewed = PutOptions(expires: .days(7), onAccess: .renew)
        let extended = PutOptions(expires: .days(7), onAccess: .set(.seconds(86_400)))
        let brief = PutOptions(memoryLifetime: .seconds(60))
        for (options, extends) in [(renewed, 7), (extended, 1), (brief, nil)] as [(PutOptions, Int?)] {
            try cache.put(data, forKey: key, options: options)
            let entry = try #require(try cache.entry(forKey: key))
            #expect(entry.extendsOnAccess == extends.map { Duration.seconds(86_400 * $0) })
            #expect(try #require(entry.expires) > entry.created + 600_000)
            #expect(try cache.get(forKey: key)?.source == .memory)
        }
    }

    @Test func `from Kingfisher: reports of values removed from disk`() throws {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        let cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        try cache.put(data, forKey: key, options: PutOptions(expires: .expired))
        let keys = Locked<[String?]>([])
        var options = CollectionOptions()
        options.onRemoval = { removal in keys.withLock { $0.append(removal.key) } }
        try cache.directory.collect(options)
        #expect(keys.withLock { $0 } == [key])
    }

    @Test func `from Kingfisher: limits, cleaning and clearing`() throws {
        try cache.put(data, forKey: key)
        #expect(try cache.directory.updateLimits { $0.maximumSize = .gibibytes(1) }.maximumSize != nil)
        cache.memory.resize(costLimit: .mebibytes(64), countLimit: 1000)
        #expect(try cache.directory.statistics().objectBytes > 0)
        var options = CollectionOptions()
        options.expiredOnly = true
        try cache.directory.collect(options)
        #expect(try cache.entry(forKey: key) != nil)
        try cache.directory.collect(CollectionOptions(maximumSize: .bytes(0)))
        #expect(try cache.entry(forKey: key) == nil)
        try cache.put(data, forKey: key)
        try cache.removeAll()
        #expect(try cache.get(forKey: key) == nil)
    }

    // MARK: Nuke

    @Test func `from Nuke`() async throws {
        let data = data
        try await cache.put(data, forKey: key, options: PutOptions(writing: .behind))
        #expect(try await cache.get(forKey: key)?.value == data)
        #expect(await cache.flush())
        let kept = try await cache.hit(forKey: key, reading: ReadOptions(source: .cache)) { _ in
            .unkept(Data())
        }
        #expect(kept?.value == data)
        let fresh = await cache.value(forKey: key, reading: ReadOptions(recomputes: true)) { data + data }
        #expect(fresh == data + data)
        #expect(try await cache.remove(forKey: key))
        #expect(await cache.value(forKey: key) { data } == data)
        try await cache.put(data, forKey: key, options: PutOptions(keeps: .diskOnly))
        #expect(try await cache.get(forKey: key)?.source == .disk)
        try await cache.put(data, forKey: key, options: PutOptions(keeps: .memoryOnly))
        #expect(try await cache.get(forKey: key)?.source == .memory)
    }

    @Test func `from Nuke: namespaces, and clearing`() throws {
        var configuration = CacheConfiguration()
        configuration.memory = CacheConfiguration.Memory(share: 0.2)
        configuration.memory.lifetime = .seconds(300)
        let cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        try cache.put(data, forKey: key)
        #expect(try cache[key] == data)
        #expect(try cache.contains(forKey: key))
        #expect(cache.memory.cost == data.count && cache.memory.count == 1)
        try cache.directory.collect()
        let kind = cache.namespace("kind/", options: PutOptions(expires: .days(7)))
        try kind.put(data, forKey: "1")
        #expect(try cache.directory.statistics().entries == 2)
        try cache.namespace("kind/").removeAll()
        #expect(try kind.get(forKey: "1") == nil)
        try kind.put(data, forKey: "2")
        try cache.removeAll(.prefix("kind/"))
        #expect(try kind.get(forKey: "2") == nil)
        #expect(try cache.contains(forKey: key))
        try cache.removeAll()
        #expect(try cache[key] == nil)
    }

    // MARK: NSCache

    @Test func `from NSCache`() async throws {
        let inMemory = cache.typed(Picture.self, options: PutOptions(keeps: .memoryOnly))
        try await inMemory.put(picture, forKey: "in memory")
        #expect(try await cache.entry(forKey: "in memory") == nil)
        let view = cache.typed(Picture.self)
        try await view.put(picture, forKey: key)
        cache.memory.removeAll()
        #expect(try await inMemory.get(forKey: "in memory") == nil)
        #expect(try await view.get(forKey: key)?.value == picture)
        try await view.put(picture, forKey: key, options: PutOptions(keeps: .memoryOnly, memoryCost: 10))
        #expect(cache.memory.cost == 10)
        #expect(cache.memory.keys == [key])
        cache.memory.resize(costLimit: .bytes(1000), countLimit: 10)
        #expect(cache.memory.count == 1)
        try await view.remove(forKey: key)
        #expect(cache.memory.keys.isEmpty)
    }

    @Test func `from NSCache: events for removed values`() async throws {
        var configuration = CacheConfiguration()
        configuration.name = "pictures"
        configuration.memory.eventsCarryValues = true
        configuration.memory.discardsParts = false
        let cache = try await SharedCache.open(at: directory.path + "/cache", configuration: configuration)
        #expect(cache.configuration.name == "pictures")
        var events = cache.events.makeAsyncIterator()
        try await cache.typed(Picture.self).put(picture, forKey: key)
        cache.memory.removeAll()
        guard case .removedFromMemory(let key, .explicit, _, let value)? = await events.next() else {
            Issue.record("no value went")
            return
        }
        #expect(key == self.key && value as? Picture == picture)
    }
}
