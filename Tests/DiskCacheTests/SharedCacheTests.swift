// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// A cache in a new directory with a clock that only the test advances.
final class CacheFixture: Sendable {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    let cache: SharedCache

    init(_ change: (inout CacheConfiguration) -> Void = { _ in }) throws {
        directory = try TemporaryDirectory()
        var configuration = CacheConfiguration()
        configuration.accessGranularity = .zero
        // Most tests are about the disk.
        configuration.memory = .none
        let clock = clock
        configuration.now = { clock.now }
        change(&configuration)
        cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
    }

    func text(_ key: String, allowingStale: Bool = false) throws -> String? {
        try cache.get(forKey: key, reading: ReadOptions(acceptsStale: allowingStale)).map {
            String(decoding: $0.value, as: UTF8.self)
        }
    }
}

/// Returns the code of the error that `body` throws.
func code(_ body: () throws -> Void) -> CacheError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? CacheError)?.code
    }
}

@Suite(.takesTurns) struct SharedCacheTests {
    @Test func `a get returns the bytes that were put`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put(Data([0, 1, 255]), forKey: "data")
        try fixture.cache.put("grüße", forKey: "string")
        try fixture.cache.put(Data(), forKey: "nothing")
        #expect(try fixture.cache.get(forKey: "data")?.value == Data([0, 1, 255]))
        #expect(try fixture.text("string") == "grüße")
        #expect(try fixture.cache.get(forKey: "nothing")?.value == Data())
        #expect(try fixture.cache.get(forKey: "absent") == nil)
    }

    @Test(arguments: [
        "a\nb", "nul\0inside", "/etc/passwd", "../../x", "\u{e9}", "e\u{301}", " ",
        String(repeating: "k", count: 1 << 20),
    ])
    func `any nonempty key is valid`(key: String) throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("value", forKey: key)
        #expect(try fixture.text(key) == "value")
        #expect(try fixture.text(key + "x") == nil)
        let listed = try fixture.cache.entries().map { try $0.get().key }
        #expect(listed == [key.utf8.count > 1024 ? nil : key])
        #expect(try fixture.cache.remove(forKey: key))
        #expect(try fixture.text(key) == nil)
    }

    @Test func `an empty key is an invalid argument`() throws {
        let fixture = try CacheFixture()
        #expect(code { try fixture.cache.put("x", forKey: "") } == .invalidArgument)
        #expect(code { _ = try fixture.cache.get(forKey: "") } == .invalidArgument)
    }

    @Test func `a subscript reads and throws like a get`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("value", forKey: "key")
        #expect(try fixture.cache["key"] == Data("value".utf8))
        #expect(try fixture.cache["absent"] == nil)
        #expect(code { _ = try fixture.cache[""] } == .invalidArgument)
        fixture.cache.close()
        #expect(code { _ = try fixture.cache["key"] } == .closed)
    }

    @Test func `an entry's path names the file of its value`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("value", forKey: "key")
        let entry = try #require(try fixture.cache.entry(forKey: "key"))
        #expect(entry.path == "objects/\(entry.digest.description.prefix(2))/\(entry.digest)")
        let file = FileManager.default.contents(atPath: fixture.cache.path + "/" + entry.path)
        #expect(file == Data("value".utf8))
        #expect(try fixture.cache.get(forKey: "key")?.entry.path == entry.path)
    }

    @Test func `two keys share an equal value, and replacing one leaves the other`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("one", forKey: "a")
        try fixture.cache.put("one", forKey: "b")
        #expect(try fixture.cache.directory.statistics().objects == 1)
        try fixture.cache.put("two", forKey: "a")
        #expect(try fixture.text("a") == "two")
        #expect(try fixture.text("b") == "one")
    }

    @Test func `a hit reports all properties of the entry`() throws {
        let fixture = try CacheFixture()
        let options = PutOptions(
            expires: .seconds(60),
            staleFor: .seconds(30),
            computeTime: .seconds(1),
            entityTag: "\"t\"",
            lastModified: "yesterday",
            contentType: "text/plain",
            tags: ["x", "y"],
            metadata: ["k": "v"]
        )
        try fixture.cache.put("value", forKey: "key", options: options)
        let entry = try #require(try fixture.cache.get(forKey: "key")).entry
        #expect(entry.key == "key")
        #expect(entry.size == 5)
        #expect(entry.digest == Digest(of: Data("value".utf8)))
        #expect(entry.created == fixture.clock.now)
        #expect(entry.expires == fixture.clock.now + 60)
        #expect(entry.staleUntil == fixture.clock.now + 90)
        #expect(entry.tags == ["x", "y"])
        #expect(entry.metadata == ["k": "v"])
        #expect(entry.entityTag == "\"t\"")
        #expect(entry.staleFor == .seconds(30))
    }

    @Test func `contains, entry and touch see a value exactly if a get would find it`() throws {
        let fixture = try CacheFixture()
        #expect(try !fixture.cache.contains(forKey: "key"))
        #expect(try fixture.cache.entry(forKey: "key") == nil)
        #expect(try !fixture.cache.touch(forKey: "key"))
        try fixture.cache.put("value", forKey: "key", options: PutOptions(expires: .seconds(10)))
        #expect(try fixture.cache.contains(forKey: "key"))
        fixture.clock.advance(by: 5)
        #expect(try fixture.cache.touch(forKey: "key"))
        #expect(try fixture.cache.entry(forKey: "key")?.lastAccess == fixture.clock.now)
        fixture.clock.advance(by: 5)
        #expect(try !fixture.cache.contains(forKey: "key"))
        #expect(try fixture.cache.entry(forKey: "key") == nil)
        #expect(try !fixture.cache.touch(forKey: "key"))
    }

    @Test(arguments: [CacheConfiguration.Writing.through, .behind])
    func `a removal of an expired value returns false but deletes it`(
        writing: CacheConfiguration.Writing
    )
        throws
    {
        let fixture = try CacheFixture { $0.writing = writing }
        let fresh = PutOptions(staleFor: .seconds(60), tags: ["tag"])
        var expiring = fresh
        expiring.expires = .seconds(10)
        func putBoth() throws {
            try fixture.cache.put("v", forKey: "expired", options: expiring)
            try fixture.cache.put("v", forKey: "fresh", options: fresh)
            fixture.clock.advance(by: 11)
        }
        try putBoth()
        #expect(try !fixture.cache.remove(forKey: "expired"))
        #expect(try fixture.cache.remove(forKey: "fresh"))
        #expect(
            try fixture.cache.get(forKey: "expired", reading: ReadOptions(acceptsStale: true)) == nil,
            "it is removed all the same"
        )
        try putBoth()
        try fixture.cache.removeAll(.tagged("tag"))
        #expect(try fixture.cache.get(forKey: "expired", reading: ReadOptions(acceptsStale: true)) == nil)
        try putBoth()
        try fixture.cache.removeAll()
        #expect(try fixture.cache.get(forKey: "fresh") == nil)
        #expect(try fixture.cache.get(forKey: "expired", reading: ReadOptions(acceptsStale: true)) == nil)
        let report = try fixture.cache.directory.collect()
        #expect(report.removed[.cleared]?.count == 2)
        #expect(fixture.directory.files(below: "cache/entries").isEmpty)
    }

    @Test(arguments: [true, false])
    func `a key whose object is missing is absent to every call, before and after a get`(
        isRead: Bool
    ) throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        let object =
            try fixture.cache.path + "/objects/" + #require(
                { () throws -> String? in
                    try cache.put("value", forKey: "key")
                    return fixture.directory.files(below: "cache/objects").first
                }()
            )
        func lose() throws {
            try cache.put("value", forKey: "key")
            try FileManager.default.removeItem(atPath: object)
            if isRead { #expect(try cache.get(forKey: "key") == nil) }
        }
        try lose()
        #expect(fixture.directory.files(below: "cache/entries").isEmpty == isRead)
        #expect(try !cache.contains(forKey: "key"))
        #expect(try cache.entry(forKey: "key") == nil)
        #expect(try !cache.touch(forKey: "key"))
        #expect(try !cache.setExpiration(.never, forKey: "key"))
        #expect(try cache.putIfAbsent(Data("value".utf8), forKey: "key"))
        #expect(try fixture.text("key") == "value")
        try lose()
        try cache.update(forKey: "key") { hit in
            #expect(hit == nil)
            return .value(Data("new".utf8))
        }
        #expect(try fixture.text("key") == "new")
    }

    @Test func `content is stored on disk even if values are kept in memory only`() throws {
        let fixture = try CacheFixture {
            $0.memory = CacheConfiguration().memory
            $0.memory.keeps = .memoryOnly
        }
        let digest = try fixture.cache.directory.store(Data("content".utf8))
        #expect(try fixture.cache.directory.data(for: digest) == Data("content".utf8))
    }

    @Test func `content can be stored and read by its digest alone`() throws {
        let fixture = try CacheFixture()
        let digest = try fixture.cache.directory.store(Data("content".utf8), expires: .seconds(10))
        #expect(digest.description == Digest(of: Data("content".utf8)).description)
        #expect(try fixture.cache.directory.data(for: digest) == Data("content".utf8))
        #expect(try fixture.cache.directory.data(for: Digest(of: Data("other".utf8))) == nil)
        fixture.clock.advance(by: 11)
        try fixture.cache.directory.collect()
        #expect(try fixture.cache.directory.data(for: digest) == nil)
    }

    @Test func `hashedOnly stores no key text`() throws {
        let fixture = try CacheFixture { $0.keyNames = .hashedOnly }
        try fixture.cache.put("value", forKey: "secret")
        #expect(try fixture.text("secret") == "value")
        #expect(try fixture.cache.entries().map { try $0.get().key } == [nil])
    }

    @Test func `putIfAbsent stores once, and again after the value has expired`() throws {
        let fixture = try CacheFixture()
        #expect(
            try fixture.cache.putIfAbsent(
                Data("a".utf8),
                forKey: "key",
                options: PutOptions(expires: .seconds(10))
            )
        )
        #expect(try !fixture.cache.putIfAbsent(Data("b".utf8), forKey: "key"))
        #expect(try fixture.text("key") == "a")
        fixture.clock.advance(by: 10)
        #expect(try fixture.cache.putIfAbsent(Data("c".utf8), forKey: "key"))
        #expect(try fixture.text("key") == "c")
    }

    @Test func `exactly one of many threads that call putIfAbsent wins`() throws {
        let fixture = try CacheFixture()
        let wins = Wins()
        onThreads(8) { index in
            let isStored = try? fixture.cache.putIfAbsent(Data("\(index)".utf8), forKey: "key")
            if isStored == true { wins.add(index) }
        }
        #expect(wins.all.count == 1)
        #expect(try fixture.text("key") == wins.all.first.map { "\($0)" })
    }

    @Test func `update sees the old value, stores the new one, and removes for nil`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.update(forKey: "key") { old in
            #expect(old == nil)
            return .value(Data("1".utf8))
        }
        try fixture.cache.update(forKey: "key") { old in .value((old?.value ?? Data()) + Data("2".utf8)) }
        #expect(try fixture.text("key") == "12")
        try fixture.cache.update(forKey: "key") { _ in nil }
        #expect(try fixture.text("key") == nil)
        struct Own: Error {}
        #expect(throws: Own.self) { try fixture.cache.update(forKey: "key") { _ in throw Own() } }
    }

    @Test func `an update that removes counts as a removal`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("v", forKey: "k")
        _ = try fixture.cache.update(forKey: "k") { _ in nil }
        #expect(fixture.cache.directory.activity.removals == 1)
    }

    @Test func `no update of many threads is lost`() throws {
        let fixture = try CacheFixture()
        onThreads(4) { _ in
            for _ in 0..<25 {
                _ = try? fixture.cache.update(forKey: "count") { old in
                    let count = old.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
                    return .value(Data("\(count + 1)".utf8))
                }
            }
        }
        #expect(try fixture.text("count") == "100")
    }

    @Test func `values are removed by tag and all at once`() throws {
        let fixture = try CacheFixture()
        for index in 0..<6 {
            let tags = index % 2 == 0 ? ["even"] : ["odd", "uneven"]
            try fixture.cache.put("v\(index)", forKey: "k\(index)", options: PutOptions(tags: tags))
        }
        try fixture.cache.removeAll(.tagged("uneven"))
        #expect(try fixture.text("k1") == nil)
        #expect(try fixture.text("k2") == "v2")
        try fixture.cache.removeAll(.tagged("even "))
        #expect(try fixture.cache.directory.statistics().entries == 3)
        try fixture.cache.removeAll()
        #expect(try fixture.cache.directory.statistics().entries == 0)
        try fixture.cache.directory.collect()
        #expect(fixture.directory.files(below: "cache/objects").isEmpty)
        #expect(fixture.directory.files(below: "cache/entries").isEmpty)
    }

    @Test func `statistics count entries, objects and calls`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("same", forKey: "a")
        try fixture.cache.put("same", forKey: "b", options: PutOptions(expires: .seconds(1)))
        _ = try fixture.cache.get(forKey: "a")
        _ = try fixture.cache.get(forKey: "nope")
        fixture.clock.advance(by: 2)
        let statistics = try fixture.cache.directory.statistics()
        #expect(statistics.entries == 2)
        #expect(statistics.expiredEntries == 1)
        #expect(statistics.objects == 1)
        #expect(statistics.logicalBytes == 8)
        #expect(statistics.activity.hits == 1)
        #expect(statistics.activity.misses == 1)
        #expect(statistics.activity.puts == 2)
        #expect(fixture.cache.directory.activity == statistics.activity)
    }

    @Test func `after close calls throw a closed error`() throws {
        let fixture = try CacheFixture()
        fixture.cache.close()
        #expect(code { _ = try fixture.cache.get(forKey: "key") } == .closed)
        #expect(code { try fixture.cache.put("x", forKey: "key") } == .closed)
    }

    @Test func `after the directory is deleted a get misses and a put throws directoryVanished`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("value", forKey: "key")
        try FileManager.default.removeItem(atPath: fixture.cache.path)
        #expect(try fixture.cache.get(forKey: "key") == nil)
        #expect(code { try fixture.cache.put("new", forKey: "key") } == .directoryVanished)
        #expect(!FileManager.default.fileExists(atPath: fixture.cache.path))
    }

    @Test func `a collection for a size keeps the most recently used values`() throws {
        let fixture = try CacheFixture()
        for index in 0..<10 {
            try fixture.cache.put(
                Data(repeating: UInt8(index), count: 4096),
                forKey: "k\(index)"
            )
            fixture.clock.advance(by: 1)
        }
        _ = try fixture.cache.get(forKey: "k0")
        let usage = try #require(try fixture.cache.directory.totals()).usage
        let report = try fixture.cache.directory.collect(
            CollectionOptions(maximumSize: ByteCount(usage.overheadBytes + usage.bytes * 3 / 10))
        )
        #expect(report.removed[.size]?.count == 7)
        #expect(try fixture.cache.contains(forKey: "k0"))
        #expect(try fixture.cache.contains(forKey: "k9"))
        #expect(try !fixture.cache.contains(forKey: "k1"))
    }

    @Test func `invalid limits of a collection are refused`() throws {
        let fixture = try CacheFixture()
        var options = CollectionOptions()
        options.maximumAge = .seconds(-1)
        #expect(code { try fixture.cache.directory.collect(options) } == .invalidArgument)
        options = CollectionOptions()
        options.maximumEntries = -1
        #expect(code { try fixture.cache.directory.collect(options) } == .invalidArgument)
    }

    @Test func `a report survives a round trip through JSON with its causes as names`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("value", forKey: "key", options: PutOptions(expires: .expired))
        let report = try fixture.cache.directory.collect()
        let json = try JSONEncoder().encode(report)
        #expect(String(decoding: json, as: UTF8.self).contains("\"removed\":{\"expired\":{"))
        #expect(try JSONDecoder().decode(CollectionReport.self, from: json) == report)
    }
}

/// The indices of the winning threads.
private final class Wins: @unchecked Sendable {
    private let lock = NSLock()
    private var indices: [Int] = []

    func add(_ index: Int) {
        lock.withLock { indices.append(index) }
    }

    var all: [Int] { lock.withLock { indices } }
}
