// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

/// A value's lifetime in memory, its cost there, and the tiers that keep it.
///
/// The tests use two caches on one directory, which share no more state than two processes do.
@Suite(.takesTurns) struct MemoryPolicyTests {
    private struct Point: Codable, Equatable {
        var x: Int
    }

    /// A cache with memory and a second one on its directory.
    private struct Pair {
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

        var entries: Int { fixture.directory.files(below: "cache/entries").count }
    }

    private static let only = PutOptions(keeps: .memoryOnly)

    private func text(_ cache: SharedCache, _ key: String = "key") throws -> String? {
        try cache.get(forKey: key).map { String(decoding: $0.value, as: UTF8.self) }
    }

    // MARK: Expiration

    @Test func `expired values leave memory without a read and are counted as expired`() throws {
        let pair = try Pair { $0.janitor.isEnabled = false }
        let cache = pair.cache
        try cache.put("a", forKey: "a", options: PutOptions(expires: .seconds(10)))
        try cache.put("b", forKey: "b", options: PutOptions(expires: .seconds(100)))
        try cache.put("c", forKey: "c")
        cache.core.dropExpired()
        #expect(cache.memory.count == 3)
        pair.fixture.clock.advance(by: 30)
        cache.core.dropExpired()
        #expect(cache.memory.keys == ["b", "c"])
        pair.fixture.clock.advance(by: 100)
        cache.core.dropExpired()
        #expect(cache.memory.keys == ["c"])
        #expect(cache.directory.activity.leftMemory == [.expired: 2])
    }

    @Test func `the background thread removes expired values from memory`() throws {
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        let options = PutOptions(expires: .after(.milliseconds(20)))
        try cache.put(Data("value".utf8), forKey: "key", options: options)
        waitUntil("it has gone") { cache.directory.activity.leftMemory == [.expired: 1] }
        #expect(cache.memory.count == 0)
    }

    @Test func `a lifetime in memory is the put's, or else the configuration's`() throws {
        let pair = try Pair { $0.memory.lifetime = .seconds(100) }
        let cache = pair.cache
        try cache.put("value", forKey: "default")
        try cache.put("value", forKey: "own", options: PutOptions(memoryLifetime: .seconds(10)))
        let forEver = PutOptions(expires: .seconds(50), memoryLifetime: .seconds(1e9))
        try cache.put("value", forKey: "expires", options: forEver)
        pair.fixture.clock.advance(by: 9)
        for key in ["default", "own", "expires"] { #expect(try cache.get(forKey: key)?.source == .memory) }
        pair.fixture.clock.advance(by: 2)
        #expect(try cache.get(forKey: "own")?.source == .disk)
        #expect(try cache.get(forKey: "own")?.source == .memory, "as what is read has the default")
        pair.fixture.clock.advance(by: 40)
        #expect(try cache.get(forKey: "expires") == nil)
        #expect(try cache.get(forKey: "default")?.source == .memory)
        pair.fixture.clock.advance(by: 50)
        #expect(try cache.get(forKey: "default")?.source == .disk)
    }

    @Test func `a lifetime in memory may be negative, zero or of the maximum length`() throws {
        let pair = try Pair()
        let lifetimes: [Duration] = [.seconds(-1), .zero, .seconds(Int64.max)]
        for lifetime in lifetimes {
            try pair.cache.put("value", forKey: "key", options: PutOptions(memoryLifetime: lifetime))
            let source: HitSource = lifetime > .zero ? .memory : .disk
            #expect(try pair.cache.get(forKey: "key")?.source == source)
        }
    }

    // MARK: Clocks

    @Test(arguments: [CacheConfiguration.Keeping.memoryAndDisk, .memoryOnly])
    func `a value in memory with a future creation time is a miss`(
        keeps: CacheConfiguration.Keeping
    ) throws {
        let pair = try Pair { $0.janitor.isEnabled = false }
        let clock = pair.fixture.clock
        let options = PutOptions(expires: .seconds(600), staleFor: .seconds(100_000), keeps: keeps)
        let put: (SharedCache) throws -> Void = { try $0.put("early", forKey: "key", options: options) }
        for cache in [pair.cache, pair.other] {
            clock.advance(by: 3600)
            try put(cache)
            #expect(try cache.get(forKey: "key")?.source == .memory)
            clock.advance(by: -3600)
            for reading in [ReadOptions(), ReadOptions(acceptsStale: true), ReadOptions(source: .memory)] {
                #expect(try cache.get(forKey: "key", reading: reading) == nil)
            }
            let value = cache.value(forKey: "key", options: options) { Data("new".utf8) }
            #expect(value == Data("new".utf8))
            #expect(try text(cache) == "new")
        }
    }

    // MARK: Age

    @Test(arguments: [CacheConfiguration.Keeping.memoryAndDisk, .memoryOnly])
    func `no value in memory exceeds the directory's maximum age, even one set later`(
        keeps: CacheConfiguration.Keeping
    ) throws {
        let pair = try Pair { $0.janitor.isEnabled = false }
        let (cache, clock) = (pair.cache, pair.fixture.clock)
        let inMemory = ReadOptions(source: .memory)
        func put(_ key: String) throws {
            try cache.put("value", forKey: key, options: PutOptions(keeps: keeps))
        }
        try put("first")
        clock.advance(by: 5)
        try cache.directory.updateLimits { $0.maximumAge = .seconds(10) }
        try put("second")
        clock.advance(by: 4)
        for key in ["first", "second"] { #expect(try cache.get(forKey: key)?.source == .memory) }
        clock.advance(by: 2)
        #expect(try cache.get(forKey: "first", reading: inMemory) == nil)
        #expect(try cache.get(forKey: "second")?.source == .memory)
        try cache.directory.collect()
        for cache in [cache, pair.other] { #expect(try text(cache, "first") == nil) }
        // Another process changes the limit; this one detects it at its check each second or with its next value.
        try pair.other.directory.updateLimits { $0.maximumAge = .seconds(5) }
        cache.core.store.followConfiguration()
        try put("third")
        #expect(try cache.get(forKey: "second", reading: inMemory) == nil)
        try pair.other.directory.updateLimits { $0.maximumAge = nil }
        cache.core.store.followConfiguration()
        cache.core.followLimits()
        try put("fourth")
        clock.advance(by: 1000)
        #expect(try cache.get(forKey: "fourth")?.source == .memory)
    }

    @Test func `a value beyond the maximum age leaves memory and is not admitted again`() throws {
        let pair = try Pair { $0.janitor.isEnabled = false }
        let (cache, clock) = (pair.cache, pair.fixture.clock)
        try pair.other.put("value", forKey: "key")
        try cache.directory.updateLimits { $0.maximumAge = .seconds(10) }
        clock.advance(by: 4)
        #expect(try cache.get(forKey: "key")?.source == .disk)
        #expect(try cache.get(forKey: "key")?.source == .memory)
        clock.advance(by: 20)
        cache.core.dropExpired()
        #expect(cache.memory.count == 0)
        for _ in 0..<2 { #expect(try cache.get(forKey: "key")?.source == .disk, "no collection was yet") }
        #expect(cache.memory.count == 0)
    }

    @Test func `a collected value is a miss even if its record is cached and its object shared`() throws {
        let pair = try Pair {
            $0.janitor.isEnabled = false
            $0.memory = .none
        }
        let (cache, clock) = (pair.cache, pair.fixture.clock)
        try cache.put("value", forKey: "old")
        try cache.directory.updateLimits { $0.maximumAge = .seconds(10) }
        clock.advance(by: 9)
        try cache.put("value", forKey: "young")
        for key in ["old", "young"] { #expect(try text(cache, key) == "value") }
        clock.advance(by: 2)
        try cache.directory.collect()
        #expect(try text(cache, "old") == nil && text(cache, "young") == "value")
    }

    @Test func `a reader's maximum age applies to values in memory`() throws {
        let pair = try Pair()
        let cache = pair.cache
        let young = ReadOptions(maximumAge: .seconds(10))
        try cache.put("value", forKey: "key")
        pair.fixture.clock.advance(by: 11)
        #expect(try cache.get(forKey: "key")?.source == .memory)
        #expect(try cache.get(forKey: "key", reading: young) == nil)
        let memory = ReadOptions(maximumAge: .seconds(10), source: .memory)
        #expect(try cache.get(forKey: "key", reading: memory) == nil)
        #expect(cache.value(forKey: "key", reading: young) { Data("new".utf8) } == Data("new".utf8))
    }

    // MARK: Cost

    @Test func `a cost is the put's, or else the configuration's, or else the size`() throws {
        let bySize = try Pair()
        try bySize.cache.put("12345", forKey: "size")
        #expect(bySize.cache.memory.cost == 5)
        try bySize.cache.put("12345", forKey: "own", options: PutOptions(memoryCost: 1000))
        #expect(bySize.cache.memory.cost == 1005)
        try bySize.cache.typed(Point.self)
            .put(Point(x: 1), forKey: "own", options: PutOptions(memoryCost: 30))
        #expect(bySize.cache.memory.cost == 1035, "the bytes are another form")
        let counted = try Pair { $0.memory.valueCost = 1 }
        try counted.cache.put("12345", forKey: "a")
        try counted.cache.typed(Point.self).put(Point(x: 1), forKey: "b")
        _ = try counted.other.get(forKey: "a")
        _ = try counted.other.typed(Point.self).get(forKey: "b")
        #expect(counted.cache.memory.cost == 2 && counted.other.memory.cost == 2)
        let behind = PutOptions(writing: .behind, memoryCost: 70)
        try counted.cache.put("12345", forKey: "a", options: behind)
        counted.cache.flush()
        #expect(counted.cache.memory.cost == 71)
    }

    @Test func `if each value costs one, the cost limit is a limit of their number`() throws {
        let pair = try Pair {
            $0.memory.costLimit = .bytes(40)
            $0.memory.valueCost = 1
        }
        let cache = pair.cache
        for number in 0..<40 { try cache.put("value", forKey: "\(number)") }
        #expect(cache.memory.count == 40)
        cache.memory.resize(costLimit: .bytes(20))
        #expect(cache.memory.count == 20)
        cache.memory.resize(costLimit: .bytes(20), countLimit: 3)
        #expect(cache.memory.count == 3)
        cache.memory.removeAll()
        cache.memory.resize(costLimit: .bytes(3))
        for number in 0..<3 { try cache.put("value", forKey: "\(number)") }
        #expect(cache.memory.count == 3, "though each is more than a quarter of that")
    }

    /// Costs of more than 256, which even an empty value takes, of 0 or less, or none leave the limit at one value per 256 bytes.
    @Test(arguments: [(1, 4096), (10, 409), (1000, 16), (0, 16), (-5, 16), (nil, 16)] as [(Int?, Int)])
    func `the default count limit depends on the cost of each value`(cost: Int?, count: Int) {
        var memory = CacheConfiguration.Memory(costLimit: .bytes(4096))
        memory.valueCost = cost
        #expect(memory.limits.count == count)
        memory.countLimit = 7
        #expect(memory.limits.count == 7)
    }

    @Test func `a share is relative to the memory available to the process`() {
        #expect(CacheConfiguration.Memory.limit(0.5, of: 1000) == .bytes(500))
        #expect(CacheConfiguration.Memory.limit(2, of: 1000) == .bytes(1000))
        for share in [-1, 0, Double.nan] {
            #expect(CacheConfiguration.Memory.limit(share, of: 1000) == .bytes(0))
        }
        #expect(CacheConfiguration.Memory.limit(0.5, of: nil) == .mebibytes(64))
        #expect(CacheConfiguration.Memory.limit(1, of: Int64.max).bytes > 0)
        let memory = CacheConfiguration.Memory(share: 0.05, countLimit: 7)
        #expect(memory.costLimit.bytes > 0 && memory.countLimit == 7)
        #expect(memory.costLimit < CacheConfiguration.Memory(share: 0.5).costLimit)
    }

    // MARK: Disk only

    @Test func `a value put on disk only is not in memory until a get reads it`() throws {
        let pair = try Pair()
        let options = PutOptions(keeps: .diskOnly)
        try pair.cache.put("old", forKey: "key")
        try pair.cache.put("new", forKey: "key", options: options)
        #expect(pair.cache.memory.count == 0)
        #expect(try pair.cache.get(forKey: "key")?.source == .disk)
        #expect(try pair.cache.get(forKey: "key")?.source == .memory)
        var behind = options
        behind.writing = .behind
        try pair.cache.put("newer", forKey: "key", options: behind)
        pair.cache.flush()
        #expect(pair.cache.memory.count == 0)
        #expect(try text(pair.cache) == "newer")
    }

    @Test func `with diskOnly as the default only puts that say so are kept in memory`() throws {
        let pair = try Pair { $0.memory.keeps = .diskOnly }
        try pair.cache.put("value", forKey: "key")
        for _ in 0..<2 { #expect(try pair.cache.get(forKey: "key")?.source == .disk) }
        try pair.cache.put("value", forKey: "key", options: PutOptions(keeps: .memoryAndDisk))
        #expect(try pair.cache.get(forKey: "key")?.source == .memory)
    }

    // MARK: Memory only

    @Test func `a memory-only value is visible only to its own process`() throws {
        let pair = try Pair()
        try pair.cache.put("value", forKey: "key", options: Self.only)
        let hit = try #require(try pair.cache.get(forKey: "key"))
        #expect(hit.source == .memory && hit.value == Data("value".utf8))
        #expect(hit.entry.size == 5 && hit.entry.key == "key")
        #expect(try text(pair.other) == nil)
        #expect(pair.entries == 0)
        #expect(try !pair.cache.contains(forKey: "key"), "that is about what is on disk")
        pair.cache.memory.removeAll()
        #expect(try text(pair.cache) == nil)
    }

    @Test func `a memory-only put replaces the stored value for all processes`() throws {
        let pair = try Pair()
        for options in [PutOptions(), PutOptions(writing: .behind)] {
            try pair.cache.put("old", forKey: "key", options: options)
            if options.writing == nil { #expect(try text(pair.other) == "old") }
            try pair.cache.put("new", forKey: "key", options: Self.only)
            pair.cache.flush()
            #expect(try text(pair.cache) == "new")
            #expect(try text(pair.other) == nil)
            #expect(pair.entries == 0)
        }
    }

    @Test func `a value that a memory-only put replaces on disk is logged as removed`() throws {
        let pair = try Pair()
        try pair.cache.directory.updateLimits { $0.eventLogSize = .mebibytes(1) }
        try pair.cache.put("old", forKey: "key")
        for _ in 0..<2 { try pair.cache.put("new", forKey: "key", options: Self.only) }
        #expect(try pair.cache.directory.removals(forKey: "key")?.map(\.cause) == [.removed])
        #expect(pair.cache.directory.activity.removals == 1 && pair.cache.directory.activity.puts == 3)
    }

    @Test func `any put or removal in any process removes a memory-only value`() throws {
        let pair = try Pair()
        let changes: [(String, String?, (SharedCache, String) throws -> Void)] = [
            ("put", "new", { try $0.put("new", forKey: $1) }),
            ("file", "new", { try $0.put(contentsOfFile: self.file(pair.fixture), forKey: $1) }),
            ("update", "new", { try $0.update(forKey: $1) { _ in .value(Data("new".utf8)) } }),
            ("remove", nil, { try $0.remove(forKey: $1) }),
            ("expiration", nil, { try $0.setExpiration(.expired, forKey: $1) }),
            ("all", nil, { cache, _ in try cache.removeAll() }),
        ]
        for (name, expected, change) in changes {
            for changing in [pair.cache, pair.other] {
                try pair.cache.put("only", forKey: name, options: Self.only)
                #expect(try text(pair.cache, name) == "only")
                try change(changing, name)
                #expect(try text(pair.cache, name) == expected, "\(name)")
            }
        }
        // A memory-only put of another process does so, too; then only that process has a value.
        try pair.cache.put("only", forKey: "key", options: Self.only)
        try pair.other.put("theirs", forKey: "key", options: Self.only)
        #expect(try text(pair.cache) == nil)
        #expect(try text(pair.other) == "theirs")
    }

    private func file(_ fixture: CacheFixture) -> String {
        let path = fixture.directory.path + "/file"
        makeFile(path, "new")
        return path
    }

    @Test func `a collection leaves a memory-only value, which expires like any other`() throws {
        let pair = try Pair()
        var options = Self.only
        options.expires = .seconds(10)
        options.onAccess = .renew
        try pair.cache.put("value", forKey: "key", options: options)
        try pair.cache.put("both", forKey: "both")
        try pair.cache.directory.collect(CollectionOptions(maximumSize: .bytes(0)))
        #expect(pair.entries == 0)
        pair.fixture.clock.advance(by: 9)
        #expect(try text(pair.cache) == "value")
        #expect(try text(pair.cache, "both") == "both")
        pair.fixture.clock.advance(by: 1)
        #expect(try text(pair.cache) == nil)
    }

    @Test func `a typed memory-only value bypasses the queue and is found only in its own form`() throws {
        let pair = try Pair { $0.writing = .behind }
        let view = pair.cache.typed(Point.self)
        try view.put(Point(x: 1), forKey: "key", options: Self.only)
        #expect(try view.get(forKey: "key")?.value == Point(x: 1))
        #expect(try text(pair.cache) == nil, "in the form in which it was put")
        #expect(pair.entries == 0)
    }

    @Test func `an asynchronous memory-only put is not written to disk`() async throws {
        let pair = try Pair { $0.writing = .behind }
        try await pair.cache.put(Data("value".utf8), forKey: "key", options: Self.only)
        #expect(try await pair.cache.get(forKey: "key")?.value == Data("value".utf8))
        #expect(pair.entries == 0)
    }

    /// Computes a memory-only value for `key` and returns whether the closure was called.
    private func computes(_ cache: SharedCache, _ text: String = "computed", _ key: String = "key") -> Bool {
        let isCalled = Locked(false)
        let value = cache.value(forKey: key, options: Self.only) {
            isCalled.withLock { $0 = true }
            return Data(text.utf8)
        }
        let hasComputed = isCalled.withLock { $0 }
        if hasComputed { #expect(value == Data(text.utf8)) }
        return hasComputed
    }

    @Test func `a memory-only value is computed once in each process`() throws {
        let pair = try Pair()
        let calls = (0..<20).map { computes($0 % 2 == 0 ? pair.cache : pair.other) }
        #expect(calls == [true, true] + Array(repeating: false, count: 18))
        #expect(pair.entries == 0)
        #expect(try text(pair.cache) == "computed")
    }

    @Test func `a computed memory-only value does not invalidate keys that share its word`() throws {
        let pair = try Pair()
        let index = Generation.index(of: Digest(ofKey: "key"))
        let neighbour = try #require(
            (0...).lazy.map { "key \($0)" }.first { Generation.index(of: Digest(ofKey: $0)) == index }
        )
        try pair.cache.put("value", forKey: neighbour)
        #expect(computes(pair.cache))
        #expect(try pair.cache.get(forKey: neighbour)?.source == .memory)
    }

    @Test func `any put or removal ends a computed memory-only value, which replaces one on disk`() throws {
        let pair = try Pair()
        for changing in [pair.cache, pair.other] {
            #expect(computes(pair.cache))
            try changing.put("new", forKey: "key")
            #expect(try text(pair.cache) == "new")
            try changing.remove(forKey: "key")
            #expect(computes(pair.cache))
            try changing.remove(forKey: "key")
            #expect(try text(pair.cache) == nil)
            // The expired value is still on disk.
            try changing.put(
                "old",
                forKey: "key",
                options: PutOptions(expires: .expired, staleFor: .seconds(60))
            )
            #expect(pair.entries == 1)
            #expect(computes(pair.cache))
            #expect(pair.entries == 0)
            #expect(try text(pair.other) == nil)
            try pair.other.remove(forKey: "key")
        }
    }

    @Test func `a computed memory-only value replaces the process's values in other forms`() throws {
        let pair = try Pair()
        try pair.cache.typed(Point.self).put(Point(x: 1), forKey: "key")
        // The value is evicted from disk but still in memory.
        try pair.cache.directory.collect(CollectionOptions(maximumSize: .bytes(0)))
        #expect(try pair.cache.typed(Point.self).get(forKey: "key")?.source == .memory)
        #expect(computes(pair.cache))
        #expect(try pair.cache.typed(Point.self).get(forKey: "key") == nil)
    }

    /// A codec that counts its encodings.
    private struct CountingCodec: CacheCodec {
        static let count = Locked(0)

        func encode(_ value: String) -> Data {
            Self.count.withLock { $0 += 1 }
            return Data(value.utf8)
        }

        func decode(_ data: Data) -> String { String(decoding: data, as: UTF8.self) }
    }

    @Test func `a memory-only value is encoded once, and only when its entry is read`() throws {
        let pair = try Pair()
        let view = pair.cache.typed(by: CountingCodec(), options: Self.only)
        CountingCodec.count.withLock { $0 = 0 }
        try view.put("value", forKey: "put")
        #expect(view.value(forKey: "computed", reading: ReadOptions(earlyRefresh: 1)) { "value" } == "value")
        for key in ["put", "computed"] { #expect(try view.get(forKey: key)?.value == "value") }
        #expect(view.value(forKey: "computed", reading: ReadOptions(earlyRefresh: 1)) { "other" } == "value")
        #expect(CountingCodec.count.withLock { $0 } == 0)
        let hit = try #require(try view.get(forKey: "put"))
        for _ in 0..<2 { #expect(hit.entry.size == 5 && hit.entry.digest == Digest(of: Data("value".utf8))) }
        #expect(CountingCodec.count.withLock { $0 } == 1)
    }

    @Test func `memory-only values of a codec without costs have cost 0 and count by number`() throws {
        let pair = try Pair { $0.memory.countLimit = 2 }
        let view = pair.cache.typed(by: CountingCodec(), options: Self.only)
        for number in 0..<5 { try view.put("value", forKey: "\(number)") }
        #expect(pair.cache.memory.count == 2 && pair.cache.memory.cost == 0)
        try view.put("value", forKey: "own", options: PutOptions(keeps: .memoryOnly, memoryCost: 7))
        #expect(pair.cache.memory.cost == 7)
    }

    @Test(arguments: [CacheConfiguration.Keeping.memoryAndDisk, .diskOnly, .memoryOnly])
    func `an unchanged value is kept where its new options say`(
        keeps: CacheConfiguration.Keeping
    ) throws {
        let pair = try Pair()
        let old = PutOptions(expires: .seconds(1), staleFor: .seconds(60))
        try pair.cache.put("value", forKey: "key", options: old)
        pair.fixture.clock.advance(by: 2)
        let terms = PutOptions(expires: .seconds(10), keeps: keeps, memoryCost: 7)
        let hit = try pair.cache.hit(forKey: "key") { _ in .unchanged(terms) }
        #expect(hit?.value == Data("value".utf8) && hit?.source == .computed)
        #expect(pair.cache.memory.cost == (keeps == .diskOnly ? 0 : 7))
        #expect(pair.entries == (keeps == .memoryOnly ? 0 : 1))
        #expect(try pair.cache.get(forKey: "key")?.source == (keeps == .diskOnly ? .disk : .memory))
        #expect(try text(pair.other) == (keeps == .memoryOnly ? nil : "value"))
    }

    @Test func `without a control file a memory-only put keeps nothing but removes the old value`() throws {
        let pair = try Pair {
            $0.assumedCapabilities = Capabilities(
                attributes: .writable,
                unnamedFiles: true,
                sharedMapping: .none
            )
        }
        try pair.cache.put("old", forKey: "key")
        try pair.cache.put("new", forKey: "key", options: Self.only)
        #expect(try text(pair.cache) == nil)
        #expect(try text(pair.other) == nil)
    }

    @Test func `a full tier that rejects newcomers admits memory-only values`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: .max, count: 1000))
        for number in 0..<10_000 { tier.keep(Token("\(number)"), by: MemoryValidity()) }
        let newcomers = (0..<100).filter { tier.keep(Token("new \($0)"), by: MemoryValidity()) }
        #expect(newcomers.count < 100)
        let only = (0..<100).filter { tier.keep(Token("only \($0)"), by: MemoryValidity(), isOnly: true) }
        #expect(only.count == 100)
        #expect(tier.usage.count == 1000)
    }
}
