// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

/// Two caches on one directory, which share no more state than two processes do.
private final class Pair: Sendable {
    let fixture: CacheFixture
    let other: SharedCache
    var cache: SharedCache { fixture.cache }

    init(_ change: (inout CacheConfiguration) -> Void = { _ in }) throws {
        fixture = try CacheFixture {
            $0.memory = CacheConfiguration.Memory()
            change(&$0)
        }
        other = try SharedCache(at: fixture.cache.path, configuration: fixture.cache.configuration)
    }

    /// Puts a value and reads it until both caches have it in memory.
    func warm(_ key: String, _ value: String, expires: Expiration? = nil) throws {
        try cache.put(value, forKey: key, options: PutOptions(expires: expires))
        for cache in [cache, other] {
            _ = try cache.get(forKey: key)
            #expect(try cache.get(forKey: key)?.source == .memory)
        }
    }
}

private func text(_ hit: CacheHit<Data>?) -> String? {
    hit.map { String(decoding: $0.value, as: UTF8.self) }
}

@Suite(.takesTurns) struct MemoryCoherenceTests {
    @Test func `a value that was read or put comes from memory the next time`() throws {
        let pair = try Pair()
        try pair.cache.put("value", forKey: "key", options: PutOptions(expires: .days(1)))
        let own = try #require(try pair.cache.get(forKey: "key"))
        #expect(own.source == .memory)
        #expect(try pair.other.get(forKey: "key")?.source == .disk)
        let hit = try #require(try pair.other.get(forKey: "key"))
        #expect(hit.source == .memory)
        #expect(text(hit) == "value")
        #expect(hit.entry == own.entry)
        #expect(hit.entry.expires == pair.fixture.clock.now + 86_400)
    }

    /// With a granularity of zero each hit is judged; otherwise most are returned by their generation alone.
    private static let granularities: [Duration] = [.zero, .seconds(3600)]

    @Test(arguments: granularities)
    func `every change of a value in one process is visible to the other at once`(
        granularity: Duration
    ) throws {
        let pair = try Pair { $0.accessGranularity = granularity }
        let file = pair.fixture.directory.path + "/file"
        try Data("from file".utf8).write(to: URL(filePath: file))
        let changes: [(String, String?, (String) throws -> Void)] = [
            ("put", "new", { try pair.other.put("new", forKey: $0) }),
            ("remove", nil, { try pair.other.remove(forKey: $0) }),
            (
                "update", "old+",
                { key in
                    try pair.other.update(forKey: key) { .value(($0?.value ?? Data()) + Data("+".utf8)) }
                }
            ),
            ("file", "from file", { try pair.other.put(contentsOfFile: file, forKey: $0) }),
            ("expiration", nil, { try pair.other.setExpiration(.expired, forKey: $0) }),
            (
                "typed", #""json""#,
                { try pair.other.typed(String.self).put("json", forKey: $0) }
            ),
            (
                "behind", "later",
                {
                    try pair.other.put("later", forKey: $0, options: PutOptions(writing: .behind))
                    pair.other.flush()
                }
            ),
            ("all", nil, { _ in try pair.other.removeAll() }),
        ]
        for (name, expected, change) in changes {
            try pair.warm(name, "old")
            try change(name)
            #expect(text(try pair.cache.get(forKey: name)) == expected, "\(name)")
            #expect(text(try pair.other.get(forKey: name)) == expected, "\(name)")
        }
    }

    @Test(arguments: granularities)
    func `a value in memory expires exactly at its expiration`(granularity: Duration) throws {
        let pair = try Pair { $0.accessGranularity = granularity }
        try pair.warm("key", "value", expires: .seconds(10))
        pair.fixture.clock.advance(by: 9.999)
        #expect(try pair.cache.get(forKey: "key")?.source == .memory)
        pair.fixture.clock.advance(by: 0.001)
        #expect(try pair.cache.get(forKey: "key") == nil)
        #expect(try pair.other.get(forKey: "key") == nil)
    }

    @Test func `a value in memory expires by the system clock to within a millisecond`() throws {
        let directory = try TemporaryDirectory()
        let cache = try SharedCache(at: directory.path + "/cache")
        let end = Date.now + 0.05
        try cache.put("value", forKey: "key", options: PutOptions(expires: .at(end)))
        while true {
            let before = Date.now
            let hit = try cache.get(forKey: "key")
            // Expirations are stored in milliseconds, and never later than requested.
            if Date.now < end - 0.001 { #expect(hit?.source == .memory) }
            if before >= end {
                #expect(hit == nil)
                return
            }
        }
    }

    @Test func `a value in memory stays valid after its eviction from disk`() throws {
        let pair = try Pair()
        try pair.warm("key", "value")
        try pair.other.directory.collect(CollectionOptions(maximumSize: .bytes(0)))
        #expect(try pair.cache.get(forKey: "key")?.source == .memory)
        try pair.other.put("new", forKey: "key")
        #expect(text(try pair.cache.get(forKey: "key")) == "new")
    }

    /// The tier switches to the new store before any process puts to it.
    @Test func `while a directory is replaced, memory is checked against the store that takes puts`() throws {
        let pair = try Pair()
        try pair.warm("key", "old")
        pair.cache.core.memory?.setStore(try Store(at: pair.fixture.directory.path + "/another"))
        #expect(text(try pair.cache.get(forKey: "key")) == "old")
        try pair.other.put("new", forKey: "key")
        #expect(text(try pair.cache.get(forKey: "key")) == "new")
    }

    @Test func `a removal of a value evicted from disk takes effect in every memory`() throws {
        let pair = try Pair()
        let removals: [(String, (String) throws -> Void)] = [
            ("remove", { try pair.other.remove(forKey: $0) }),
            ("all", { _ in try pair.other.removeAll() }),
            ("tag", { _ in try pair.other.removeAll(.tagged("tag")) }),
            ("update", { try pair.other.update(forKey: $0) { _ in nil } }),
            ("expiration", { try pair.other.setExpiration(.expired, forKey: $0) }),
        ]
        for (name, remove) in removals {
            try pair.cache.put("value", forKey: name, options: PutOptions(tags: ["tag"]))
            try pair.other.directory.collect(CollectionOptions(maximumSize: .bytes(0)))
            #expect(try pair.cache.get(forKey: name)?.source == .memory)
            try remove(name)
            #expect(try pair.cache.get(forKey: name) == nil)
        }
    }

    @Test func `memory hits are recorded on disk when accesses are flushed`() throws {
        let pair = try Pair { $0.accessGranularity = .seconds(60) }
        try pair.warm("key", "value")
        let before = try #require(try pair.cache.entry(forKey: "key")?.lastAccess)
        pair.fixture.clock.advance(by: 30)
        #expect(try pair.cache.get(forKey: "key")?.source == .memory)
        pair.cache.core.flushAccesses()
        #expect(try pair.cache.entry(forKey: "key")?.lastAccess == before)
        pair.fixture.clock.advance(by: 60)
        #expect(try pair.cache.get(forKey: "key")?.source == .memory)
        pair.cache.core.flushAccesses()
        #expect(try pair.cache.entry(forKey: "key")?.lastAccess == pair.fixture.clock.now)
    }

    @Test func `an access recorded late does not replace a later one of another process`() throws {
        let pair = try Pair { $0.accessGranularity = .seconds(60) }
        try pair.warm("key", "value")
        pair.fixture.clock.advance(by: 61)
        #expect(try pair.cache.get(forKey: "key")?.source == .memory)
        pair.fixture.clock.advance(by: 500)
        try pair.other.touch(forKey: "key")
        let noted = pair.fixture.clock.now
        pair.fixture.clock.advance(by: 5)
        pair.cache.core.flushAccesses()
        #expect(try pair.cache.entry(forKey: "key")?.lastAccess == noted)
        // A recorded access in the future does not count, because the clock was set back.
        pair.fixture.clock.advance(by: -400)
        pair.cache.core.noteAccess(Digest(ofKey: "key"), at: Timestamp(pair.fixture.clock.now))
        pair.cache.core.flushAccesses()
        #expect(try pair.cache.entry(forKey: "key")?.lastAccess == pair.fixture.clock.now)
    }

    @Test func `a slice has the same indices from memory as from disk`() throws {
        let pair = try Pair { $0.writeBehind = CacheConfiguration.WriteBehind() }
        let whole = Data(0..<100)
        for policy in [CacheConfiguration.Writing.through, .behind] {
            try pair.cache.put(whole[40..<50], forKey: "key", options: PutOptions(writing: policy))
            for cache in [pair.cache, pair.cache, pair.other] {
                let data = try #require(try cache.get(forKey: "key")?.value)
                #expect(data.startIndex == 0 && data == Data(40..<50))
                pair.cache.flush()
            }
        }
    }

    @Test func `after the directory is replaced values are held by the new directory's control file`() throws
    {
        let pair = try Pair { $0.janitor.isEnabled = false }
        let cache = pair.cache
        try pair.warm("key", "old")
        let hits = cache.directory.activity.memoryHits
        // The directory object owns the descriptors.
        weak let old = cache.core.store.directory
        try FileManager.default.removeItem(atPath: cache.path)
        try cache.core.reopen()
        #expect(old == nil, "what is not used any more has no descriptors open")
        let left = try cache.directory.totals()?.activity.leftMemory
        #expect(left == [.invalidated: 1], "what left is counted there")
        #expect(try cache.get(forKey: "key") == nil)
        try cache.put("new", forKey: "key")
        #expect(try cache.get(forKey: "key")?.source == .memory)
        #expect(cache.directory.activity.memoryHits == hits + 1)
        let third = try SharedCache(at: cache.path, configuration: cache.configuration)
        #expect(try third.directory.totals()?.activity.memoryHits == 1)
        try third.put("newer", forKey: "key")
        #expect(text(try cache.get(forKey: "key")) == "newer")
    }

    @Test func `memory hits are counted`() throws {
        let pair = try Pair()
        try pair.cache.put("value", forKey: "key")
        for _ in 0..<3 { #expect(try pair.cache.get(forKey: "key")?.source == .memory) }
        #expect(pair.cache.directory.activity.hits == 3)
        #expect(pair.cache.directory.activity.misses == 0)
    }

    @Test func `memory hits prolong a sliding expiration for all processes`() throws {
        let pair = try Pair()
        try pair.cache.put(
            "value",
            forKey: "key",
            options: PutOptions(expires: .seconds(160), onAccess: .renew)
        )
        pair.fixture.clock.advance(by: 1)
        for _ in 0..<100 {
            #expect(text(try pair.cache.get(forKey: "key")) == "value")
            pair.fixture.clock.advance(by: 9)
        }
        pair.fixture.clock.advance(by: 130)
        #expect(text(try pair.other.get(forKey: "key")) == "value")
        pair.fixture.clock.advance(by: 171)
        #expect(try pair.cache.get(forKey: "key") == nil)
        #expect(try pair.other.get(forKey: "key") == nil)
    }

    @Test func `a stale value in memory is not returned as fresh`() throws {
        let pair = try Pair()
        try pair.cache.put(
            "value",
            forKey: "key",
            options: PutOptions(expires: .seconds(10), staleFor: .seconds(10))
        )
        pair.fixture.clock.advance(by: 11)
        for _ in 0..<2 {
            let stale = try pair.cache.get(forKey: "key", reading: ReadOptions(acceptsStale: true))
            #expect(stale?.isStale == true)
            #expect(try pair.cache.get(forKey: "key") == nil)
        }
    }

    @Test func `without a control file each memory hit is compared with the record on disk`() throws {
        let pair = try Pair {
            $0.assumedCapabilities = Capabilities(
                attributes: .writable,
                unnamedFiles: true,
                sharedMapping: .none
            )
        }
        #expect(!pair.cache.core.store.hasGenerations)
        try pair.warm("key", "old")
        try pair.other.put("new", forKey: "key")
        #expect(text(try pair.cache.get(forKey: "key")) == "new")
        #expect(try pair.cache.get(forKey: "key")?.source == .memory)
        try pair.other.remove(forKey: "key")
        #expect(try pair.cache.get(forKey: "key") == nil)
    }

    @Test(arguments: granularities)
    func `a control file deleted by hand is abandoned soon`(granularity: Duration) throws {
        let pair = try Pair { $0.accessGranularity = granularity }
        try pair.warm("key", "old")
        try FileManager.default.removeItem(atPath: pair.cache.path + "/control")
        let third = try SharedCache(at: pair.cache.path, configuration: pair.cache.configuration)
        try third.put("new", forKey: "key")
        try waitUntil("the janitor, which looks once a second, has seen it") {
            try [pair.cache, pair.other].allSatisfy { text(try $0.get(forKey: "key")) == "new" }
        }
        try pair.cache.put("newer", forKey: "key")
        for cache in [pair.cache, pair.other, third] {
            #expect(text(try cache.get(forKey: "key")) == "newer")
        }
    }

    @Test func `a generation word is valid only in its own mapping`() throws {
        let pair = try Pair()
        try pair.warm("key", "value")
        let store = pair.cache.core.store
        let generation = try #require(store.generation(of: Digest(ofKey: "key")))
        let (word, index, mapping) = (generation.word, generation.index, generation.mapping)
        let hits = try #require(store.cumulative)[.memoryHit]
        #expect(!store.countsHit(word, at: index, of: mapping &+ 8))
        #expect(!store.countsHit(word &+ GenerationWord.raise, at: index, of: mapping))
        #expect(store.cumulative?[.memoryHit] == hits)
        #expect(store.countsHit(word, at: index, of: mapping))
        #expect(store.cumulative?[.memoryHit] == hits + 1)
    }

    @Test(arguments: granularities)
    func `without the generation check old values are returned, so the tests above can fail`(
        granularity: Duration
    ) throws {
        let pair = try Pair {
            $0.checksGenerations = false
            $0.accessGranularity = granularity
        }
        try pair.warm("key", "old")
        try pair.other.put("new", forKey: "key")
        #expect(text(try pair.cache.get(forKey: "key")) == "old")
    }

    @Test func `removals from memory are reported with their cause`() throws {
        let causes = Locked<Set<String>>([])
        let pair = try Pair {
            $0.memory = CacheConfiguration.Memory(costLimit: .bytes(100), countLimit: 2)
            $0.onEvent = { event in
                guard case .removedFromMemory(let key, let cause, _, _) = event else { return }
                causes.withLock { _ = $0.insert("\(key): \(cause)") }
            }
        }
        let cache = pair.cache
        try cache.put("1", forKey: "explicit")
        try cache.remove(forKey: "explicit")
        try cache.put("1", forKey: "replaced")
        try cache.put("2", forKey: "replaced")
        try cache.put("1", forKey: "expired", options: PutOptions(expires: .seconds(1)))
        pair.fixture.clock.advance(by: 2)
        _ = try cache.get(forKey: "expired")
        cache.memory.removeAll()
        try cache.put("1", forKey: "invalidated")
        try pair.other.put("2", forKey: "invalidated")
        _ = try cache.get(forKey: "invalidated")
        cache.memory.removeAll()
        for key in ["count", "b", "c"] { try cache.put("1", forKey: key) }
        cache.memory.removeAll()
        for key in ["cost", "d"] { try cache.put(Data(repeating: 1, count: 25), forKey: key) }
        cache.memory.resize(costLimit: .bytes(40), countLimit: 2)
        #expect(cache.memory.count == 1)
        let found = causes.withLock { $0 }
        for cause in MemoryRemovalCause.allCases where cause != .pressure {
            #expect(found.contains("\(cause): \(cause)"))
        }
    }

    @Test(arguments: [false, true])
    func `memory shrinks under system memory pressure unless that is turned off`(isOff: Bool)
        throws
    {
        let pair = try Pair { $0.memory.shrinksUnderPressure = !isOff }
        for index in 0..<100 { try pair.cache.put("1234", forKey: "\(index)") }
        pair.cache.core.relieve { .none }
        #expect(pair.cache.memory.cost == 400 && pair.cache.memory.count == 100)
        pair.cache.core.relieve { .some }
        #expect(pair.cache.memory.cost == (isOff ? 400 : 300))
        #expect(pair.cache.memory.count == (isOff ? 100 : 75))
        pair.cache.core.relieve { .critical }
        #expect(pair.cache.memory.cost == (isOff ? 400 : 72))
        #expect(pair.cache.core.store.counters[.memoryPressure] == (isOff ? 0 : 82))
    }

    @Test func `a frozen tier serves hits and admits nothing`() throws {
        let pair = try Pair()
        try pair.warm("key", "value")
        pair.cache.memory.isFrozen = true
        try pair.cache.put("x", forKey: "new")
        #expect(try pair.cache.get(forKey: "new")?.source == .disk)
        #expect(try pair.cache.get(forKey: "key")?.source == .memory)
        pair.cache.memory.isFrozen = false
        #expect(try pair.cache.get(forKey: "new")?.source == .disk)
        #expect(try pair.cache.get(forKey: "new")?.source == .memory)
    }

    @Test func `a closed cache does not serve memory hits`() throws {
        let pair = try Pair()
        try pair.warm("key", "value")
        pair.cache.close()
        #expect(code { _ = try pair.cache.get(forKey: "key") } == .closed)
    }

    @Test func `asynchronous gets are served from memory`() async throws {
        let pair = try Pair()
        try pair.warm("key", "value")
        #expect(try await pair.cache.get(forKey: "key")?.source == .memory)
        try await pair.other.put("new", forKey: "key")
        #expect(text(try await pair.cache.get(forKey: "key")) == "new")
    }
}
