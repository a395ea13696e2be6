// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// Calls that read a value and its entry, decide, and write in one step.
@Suite(.takesTurns) struct UpdateTests {
    private let fixture: CacheFixture
    private var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try CacheFixture()
    }

    private static let terms = PutOptions(
        expires: .seconds(100),
        staleFor: .seconds(50),
        computeTime: .milliseconds(300),
        entityTag: "\"1\"",
        lastModified: "Thu, 01 Jan 1970 00:00:00 GMT",
        contentType: "text/plain",
        tags: ["a", "b"],
        metadata: ["name": "text"]
    )

    private func entry(_ key: String = "k") throws -> CacheEntry {
        try #require(try cache.entry(forKey: key))
    }

    /// Expects that all stored options of the two entries are equal.
    private func expectSameTerms(_ entry: CacheEntry, _ other: CacheEntry) {
        #expect(entry.expires == other.expires && entry.extendsOnAccess == other.extendsOnAccess)
        #expect(entry.staleUntil == other.staleUntil && entry.staleFor == other.staleFor)
        #expect(entry.computeTime == other.computeTime && entry.entityTag == other.entityTag)
        #expect(entry.lastModified == other.lastModified && entry.contentType == other.contentType)
        #expect(entry.tags == other.tags && entry.metadata == other.metadata)
    }

    // MARK: Update

    @Test func `the closure gets the entry with the value and can keep its options`() throws {
        try cache.put("1", forKey: "k", options: Self.terms)
        let before = try entry()
        fixture.clock.advance(by: 10.0123456)
        try cache.update(forKey: "k") { hit in
            let hit = try #require(hit)
            #expect(hit.value == Data("1".utf8) && !hit.isStale)
            expectSameTerms(hit.entry, before)
            return .value(Data("2".utf8), PutOptions(keeping: hit.entry))
        }
        #expect(try fixture.text("k") == "2")
        expectSameTerms(try entry(), before)
        #expect(try entry().created > before.created)
    }

    @Test func `keeping the options of a value that never expires overrides the defaults`() throws {
        let fixture = try CacheFixture {
            $0.defaultExpiration = .seconds(5)
            $0.defaultOnAccess = .renew
        }
        try fixture.cache.put("1", forKey: "k", options: PutOptions(expires: .never, onAccess: .keep))
        try fixture.cache.update(forKey: "k") { hit in
            .value(Data("2".utf8), PutOptions(keeping: try #require(hit).entry))
        }
        let entry = try #require(try fixture.cache.entry(forKey: "k"))
        #expect(entry.expires == nil && entry.extendsOnAccess == nil)
    }

    @Test func `an update counts as an access and keeps a renewed expiration`() throws {
        try cache.put("1", forKey: "k", options: PutOptions(expires: .seconds(10), onAccess: .renew))
        fixture.clock.advance(by: 8)
        #expect(try fixture.text("k") == "1")
        fixture.clock.advance(by: 5)
        try cache.update(forKey: "k") { hit in
            .value(Data("2".utf8), PutOptions(keeping: try #require(hit).entry))
        }
        fixture.clock.advance(by: 9)
        #expect(try cache.contains(forKey: "k"))
        fixture.clock.advance(by: 2)
        #expect(try !cache.contains(forKey: "k"))
    }

    @Test func `the closure's options replace those of the call`() throws {
        let options = PutOptions(expires: .seconds(5), tags: ["call"])
        try cache.update(forKey: "a", options: options) { _ in .value(Data()) }
        try cache.update(forKey: "b", options: options) { _ in .value(Data(), PutOptions(tags: ["own"])) }
        #expect(try entry("a").tags == ["call"])
        #expect(try entry("b").tags == ["own"])
        #expect(try entry("b").expires == nil)
    }

    @Test func `an unchanged value is not written`() throws {
        try cache.put("1", forKey: "k", options: Self.terms)
        let before = try entry()
        fixture.clock.advance(by: 1)
        let value = try cache.update(forKey: "k", options: PutOptions(tags: ["new"])) { _ in .unchanged() }
        #expect(value == Data("1".utf8))
        let after = try entry()
        #expect(after.created == before.created)
        expectSameTerms(after, before)
        #expect(cache.directory.activity.puts == 1)
    }

    @Test func `new options for an unchanged value write no bytes of it`() throws {
        let fixture = try CacheFixture { $0.memory = CacheConfiguration.Memory() }
        let cache = fixture.cache
        try cache.put("1", forKey: "k", options: Self.terms)
        let other = try SharedCache(at: cache.path, configuration: cache.configuration)
        #expect(try other.get(forKey: "k")?.entry.tags == ["a", "b"])
        let written = cache.counters[.bytesWritten]
        let value = try cache.update(forKey: "k") { _ in
            .unchanged(PutOptions(expires: .seconds(9), tags: ["c"]))
        }
        #expect(value == Data("1".utf8))
        #expect(cache.counters[.bytesWritten] == written)
        for cache in [cache, other] {
            let hit = try #require(try cache.get(forKey: "k"))
            #expect(hit.value == Data("1".utf8))
            #expect(hit.entry.tags == ["c"] && hit.entry.expires == fixture.clock.now + 9)
            #expect(hit.entry.entityTag == "\"1\"" && hit.entry.staleFor == .seconds(50), "left as it was")
        }
        fixture.clock.advance(by: 9)
        #expect(try other.get(forKey: "k") == nil)
    }

    @Test func `an unkept value is returned, and the stored value stays`() throws {
        try cache.put("1", forKey: "k")
        for key in ["k", "other"] {
            let value = try cache.update(forKey: key) { _ in .unkept(Data("2".utf8)) }
            #expect(value == Data("2".utf8))
        }
        #expect(try fixture.text("k") == "1")
        #expect(try fixture.text("other") == nil)
    }

    @Test func `nil removes the value, and so does a negative result for zero time`() throws {
        for key in ["a", "b"] { try cache.put("1", forKey: key) }
        #expect(try cache.update(forKey: "a") { _ in nil } == nil)
        #expect(try cache.update(forKey: "b") { _ in .nothing(for: .zero) } == nil)
        for key in ["a", "b"] { #expect(try fixture.text(key) == nil) }
        #expect(cache.directory.activity.removals == 2)
    }

    @Test func `a negative result is remembered for the given time`() throws {
        try cache.put("1", forKey: "k")
        #expect(try cache.update(forKey: "k") { _ in .nothing(for: .seconds(5)) } == nil)
        #expect(try fixture.text("k") == nil)
        #expect(cache.counters[.negativeHit] == 1)
        try cache.update(forKey: "k") { hit in
            #expect(hit == nil)
            return .unchanged()
        }
        fixture.clock.advance(by: 5)
        #expect(try fixture.text("k") == nil)
        #expect(cache.counters[.negativeHit] == 1, "only while it was remembered")
        #expect(try cache.increment(forKey: "k") == 1)
    }

    @Test func `an unchanged result without a previous value stores nothing`() throws {
        #expect(try cache.update(forKey: "k") { _ in .unchanged() } == nil)
        #expect(try cache.update(forKey: "k") { _ in .unchanged(Self.terms) } == nil)
        #expect(try fixture.text("k") == nil)
    }

    @Test func `an update does not see an expired value, even while it is stale`() throws {
        try cache.put("1", forKey: "k", options: Self.terms)
        fixture.clock.advance(by: 100)
        try cache.update(forKey: "k") { hit in
            #expect(hit == nil)
            return .value(Data("2".utf8))
        }
        #expect(try fixture.text("k") == "2")
    }

    @Test(arguments: ["value", "terms", "removal"])
    func `the closure is called again if the key changes meanwhile`(change: String) throws {
        try cache.put("1", forKey: "k", options: Self.terms)
        let other = try SharedCache(at: cache.path, configuration: cache.configuration)
        let decisions: [Computed<Data>] = [
            .value(Data("3".utf8)), .unchanged(PutOptions(tags: ["x"])), .nothing(for: .zero),
        ]
        for decision in decisions {
            try cache.put("1", forKey: "k", options: Self.terms)
            var seen: [String?] = []
            _ = try cache.update(forKey: "k") { hit in
                seen.append(hit.map { String(decoding: $0.value, as: UTF8.self) + "\($0.entry.tags.count)" })
                if seen.count > 1 { return decision }
                switch change {
                case "value": try other.put("2", forKey: "k")
                case "terms": try other.update(forKey: "k") { _ in .unchanged(PutOptions(tags: ["one"])) }
                default: try other.remove(forKey: "k")
                }
                return decision
            }
            #expect(seen == ["12", ["value": "20", "terms": "11"][change]])
        }
    }

    // MARK: Increment

    @Test func `a counter starts at 0 and is stored as an ordinary value`() async throws {
        #expect(try await cache.increment(forKey: "n") == 1)
        #expect(try await cache.increment(forKey: "n", by: 41) == 42)
        #expect(try await cache.increment(forKey: "n", by: -50) == -8)
        #expect(try await cache.increment(forKey: "n", by: 0) == -8)
        #expect(try await cache.get(forKey: "n")?.value == Data("-8".utf8))
        try await cache.put("7", forKey: "n")
        #expect(try await cache.increment(forKey: "n") == 8)
        try await cache.put("-9223372036854775808\n", forKey: "n")
        #expect(try await cache.increment(forKey: "n") == Int.min + 1)
    }

    @Test func `a counter keeps its options and restarts after it has expired`() throws {
        for count in 1...4 {
            #expect(try cache.increment(forKey: "n", options: Self.terms) == count)
            fixture.clock.advance(by: 25)
        }
        #expect(try fixture.text("n") == nil, "100 s from the first")
        #expect(try cache.increment(forKey: "n", options: PutOptions(tags: ["new"])) == 1)
        #expect(try cache.increment(forKey: "n", options: Self.terms) == 2)
        #expect(try entry("n").tags == ["new"])
        #expect(try entry("n").expires == nil)
    }

    @Test(
        arguments: [
            "", "x", "\n", "1\n\n", " 1", "1.5", "0x1", "99999999999999999999",
            String(repeating: "1", count: 9999),
        ]
    )
    func `incrementing a value that is not a number throws and leaves it`(text: String) throws {
        try cache.put(text, forKey: "n")
        #expect(code { try cache.increment(forKey: "n") } == .invalidArgument)
        #expect(try fixture.text("n") == text)
    }

    @Test(arguments: [(Int.max, 1), (Int.min, -1), (Int.max, Int.max)])
    func `a sum out of range throws and stores nothing`(number: Int, amount: Int) throws {
        try cache.put("\(number)", forKey: "n")
        #expect(code { try cache.increment(forKey: "n", by: amount) } == .invalidArgument)
        #expect(try cache.increment(forKey: "n", by: 0) == number)
    }

    @Test func `no increment of many threads is lost`() throws {
        let other = try SharedCache(at: cache.path, configuration: cache.configuration)
        let caches = [cache, other]
        onThreads(8) { index in
            for _ in 0..<25 { _ = try? caches[index % 2].increment(forKey: "n") }
        }
        #expect(try cache.increment(forKey: "n", by: 0) == 200)
    }
}
