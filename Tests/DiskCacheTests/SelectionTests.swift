// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

/// Bulk calls: for keys with a prefix, a tag or a pattern, and for all keys.
@Suite(.takesTurns) struct SelectionTests {
    /// Returns a cache with the keys "a/1", "a/2", "b/1" and "b/2"; those that end in 1 have the tag "one".
    private func filled(_ change: (inout CacheConfiguration) -> Void = { _ in }) throws -> CacheFixture {
        let fixture = try CacheFixture(change)
        for key in ["a/1", "a/2", "b/1", "b/2"] { try put(key, in: fixture) }
        return fixture
    }

    private func put(_ key: String, in fixture: CacheFixture) throws {
        let options = PutOptions(staleFor: .seconds(5), tags: key.hasSuffix("1") ? ["one"] : [])
        try fixture.cache.put("value of \(key)", forKey: key, options: options)
    }

    private func keys(_ fixture: CacheFixture, _ selection: KeySelection = .all) throws -> [String] {
        try fixture.cache.entries(selection).compactMap { try $0.get().key }.sorted()
    }

    private static let selections: [(KeySelection, [String])] = [
        (.all, ["a/1", "a/2", "b/1", "b/2"]), (.prefix("a/"), ["a/1", "a/2"]), (.prefix("b/1"), ["b/1"]),
        (.prefix("c"), []), (.tagged("one"), ["a/1", "b/1"]), (.tagged("on"), []),
        (.glob("*/2"), ["a/2", "b/2"]), (.glob("[!a]/?"), ["b/1", "b/2"]), (.glob("a"), []),
    ]

    @Test(arguments: [KeySelection.prefix("a/"), .glob("a/*")])
    func `recorded absences expire with values`(selection: KeySelection) async throws {
        let fixture = try filled()
        let cache = fixture.cache
        func isComputed() async throws -> Bool {
            let isCalled = Locked(false)
            let hit = try await cache.hit(forKey: "a/3") { _ in
                isCalled.withLock { $0 = true }
                return .nothing(for: .seconds(3600))
            }
            #expect(hit == nil)
            return isCalled.withLock { $0 }
        }
        #expect(try await isComputed())
        #expect(try await !isComputed())
        try await cache.blocking { try $0.expireAll(selection) }
        #expect(try await isComputed())
        withExtendedLifetime(fixture) {}
    }

    @Test(arguments: [CacheConfiguration.Writing.through, .behind])
    func `listing, statistics and removal of a selection cover the same keys`(
        writing: CacheConfiguration.Writing
    ) throws {
        for (selection, expected) in Self.selections {
            for hasMemory in [true, false] {
                let fixture = try filled {
                    $0.writing = writing
                    if hasMemory { $0.memory = CacheConfiguration.Memory() }
                }
                let all = try keys(fixture)
                #expect(all.count == 4)
                #expect(try keys(fixture, selection) == expected, "\(selection)")
                let statistics = try fixture.cache.directory.statistics(selection)
                #expect(statistics.entries == expected.count && statistics.objects == expected.count)
                #expect(statistics.logicalBytes == Int64(expected.count * "value of a/1".utf8.count))
                try fixture.cache.removeAll(selection)
                for key in all {
                    let isThere = try fixture.cache.contains(forKey: key)
                    #expect(isThere == !expected.contains(key), "\(selection): \(key)")
                    let hit = try fixture.cache.get(forKey: key, reading: ReadOptions(acceptsStale: true))
                    #expect((hit == nil) == expected.contains(key), "\(selection): \(key)")
                }
                #expect(try keys(fixture) == all.filter { !expected.contains($0) })
                #expect(try fixture.cache.directory.statistics().entries == 4 - expected.count)
                for key in all { try put(key, in: fixture) }
                #expect(try keys(fixture) == all, "what is put afterwards is there")
            }
        }
    }

    @Test func `a call with an earlier time does not revive values that were expired in bulk`() throws {
        let fixture = try filled()
        var configuration = CacheConfiguration()
        configuration.memory = .none
        // The time of a caller that has read the clock and was then stopped for a moment.
        let late = fixture.clock.now - 0.01
        configuration.now = { late }
        let other = try SharedCache(at: fixture.cache.path, configuration: configuration)
        try fixture.cache.expireAll(.prefix("a/"))
        #expect(try !other.setExpiration(.days(1), forKey: "a/1"))
        #expect(try other.setExpiration(.days(1), forKey: "b/1"))
        #expect(try other.get(forKey: "a/2") == nil && !other.contains(forKey: "a/2"))
        try other.update(forKey: "a/2") { hit in
            #expect(hit == nil)
            return .unchanged()
        }
        #expect(try keys(fixture) == ["b/1", "b/2"])
    }

    @Test func `a value whose expiration changes during a removal by pattern is removed too`() throws {
        let fixture = try CacheFixture()
        let other = try SharedCache(at: fixture.cache.path)
        for round in 0..<60 {
            try fixture.cache.put("value \(round)", forKey: "key")
            let isRemoved = Locked(false)
            onThreads(2) { index in
                do {
                    if index == 0 {
                        try fixture.cache.removeAll(.glob("k*"))
                        isRemoved.withLock { $0 = true }
                    } else {
                        while !isRemoved.withLock({ $0 }) { try other.setExpiration(.days(1), forKey: "key") }
                    }
                } catch {
                    isRemoved.withLock { $0 = true }
                    Issue.record(error)
                }
            }
            #expect(try fixture.text("key") == nil)
        }
    }

    @Test func `values expired in bulk are stale for their own window or the given one`() throws {
        let periods: [(Duration?, Int)] = [(nil, 5), (.seconds(60), 60)]
        for (period, seconds) in periods {
            for (selection, expected) in Self.selections {
                let fixture = try filled { $0.memory = CacheConfiguration.Memory() }
                _ = try fixture.text("a/1")
                try fixture.cache.expireAll(selection, staleFor: period)
                for key in ["a/1", "a/2", "b/1", "b/2"] {
                    let isMeant = expected.contains(key)
                    #expect((try fixture.text(key) == nil) == isMeant, "\(selection)")
                    let hit = try fixture.cache.get(forKey: key, reading: ReadOptions(acceptsStale: true))
                    #expect(hit?.isStale == isMeant, "\(selection): \(key)")
                }
                fixture.clock.advance(by: Double(seconds))
                for key in ["a/1", "a/2", "b/1", "b/2"] {
                    let text = try fixture.text(key, allowingStale: true)
                    #expect((text == nil) == expected.contains(key))
                }
                try put("a/1", in: fixture)
                #expect(try fixture.text("a/1") == "value of a/1")
            }
        }
    }

    @Test func `a bulk expiration does not prolong the stale window of an expired value`() throws {
        let fixture = try CacheFixture()
        let options = PutOptions(expires: .seconds(1), staleFor: .seconds(5))
        try fixture.cache.put("value", forKey: "key", options: options)
        fixture.clock.advance(by: 2)
        try fixture.cache.expireAll(.all, staleFor: .seconds(60))
        #expect(try fixture.text("key", allowingStale: true) == "value")
        fixture.clock.advance(by: 4)
        #expect(try fixture.text("key", allowingStale: true) == nil)
    }

    @Test func `a negative stale window is refused, and nothing expires`() throws {
        let fixture = try filled()
        #expect(code { try fixture.cache.expireAll(.all, staleFor: .seconds(-1)) } == .invalidArgument)
        #expect(
            code { try fixture.cache.setExpiration(.expired, staleFor: .seconds(-1), forKey: "a/1") }
                == .invalidArgument
        )
        #expect(try keys(fixture).count == 4)
    }

    @Test func `setExpiration makes a value that never expires stale`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("own", forKey: "own", options: PutOptions(staleFor: .seconds(5)))
        try fixture.cache.put("given", forKey: "given")
        #expect(try fixture.cache.setExpiration(.expired, forKey: "own"))
        #expect(try fixture.cache.setExpiration(.expired, staleFor: .seconds(60), forKey: "given"))
        for key in ["own", "given"] {
            #expect(try fixture.text(key) == nil && fixture.text(key, allowingStale: true) == key)
        }
        fixture.clock.advance(by: 5)
        #expect(try fixture.text("own", allowingStale: true) == nil)
        #expect(try fixture.text("given", allowingStale: true) == "given")
        fixture.clock.advance(by: 55)
        #expect(try fixture.text("given", allowingStale: true) == nil)
    }

    @Test func `an entry without a stored key is removed by any prefix and listed by none`() throws {
        let fixture = try filled { $0.keyNames = .hashedOnly }
        #expect(try fixture.cache.entries(.prefix("a/")).map { try $0.get() }.isEmpty)
        #expect(try fixture.cache.entries(.tagged("one")).map { try $0.get() }.count == 2)
        try fixture.cache.removeAll(.glob("*"))
        #expect(try fixture.cache.directory.statistics().entries == 4)
        try fixture.cache.removeAll(.prefix("c"))
        #expect(try fixture.cache.directory.statistics().entries == 0)
        let long = try CacheFixture()
        let key = String(repeating: "k", count: 2000)
        try long.cache.put("value", forKey: key)
        try long.cache.removeAll(.prefix("other"))
        #expect(try long.text(key) == nil)
    }

    /// The same happens on a file system without shared memory.
    @Test func `without removal rules each value is changed separately, with the same result`() throws {
        for (selection, expected) in Self.selections {
            let fixture = try filled()
            // Makes it impossible to write a rule.
            try FileManager.default.createDirectory(
                atPath: fixture.cache.path + "/rules/in the way",
                withIntermediateDirectories: true
            )
            try fixture.cache.expireAll(selection, staleFor: .seconds(60))
            for key in ["a/1", "a/2", "b/1", "b/2"] {
                let isMeant = expected.contains(key)
                #expect((try fixture.text(key) == nil) == isMeant)
                #expect(try fixture.text(key, allowingStale: true) == "value of \(key)")
            }
            try fixture.cache.removeAll(selection)
            for key in ["a/1", "a/2", "b/1", "b/2"] {
                let text = try fixture.text(key, allowingStale: true)
                #expect((text == nil) == expected.contains(key))
            }
            #expect(fixture.cache.directory.activity.removalRules == 0)
            #expect(fixture.directory.files(below: "cache/entries").count == 4 - expected.count)
        }
    }

    @Test func `a collection of a selection removes nothing outside it for a limit`() throws {
        let fixture = try filled()
        var options = CollectionOptions()
        options.maximumEntries = 1
        options.selection = .prefix("a/")
        #expect(try fixture.cache.directory.collect(options).removed[.entries]?.count == 2)
        #expect(try keys(fixture) == ["b/1", "b/2"])
    }

    @Test func `bulk calls are counted, and the collection counts the entries they removed`() throws {
        let fixture = try filled()
        try fixture.cache.removeAll(.prefix("a/"))
        try fixture.cache.removeAll(.glob("b/1"))
        try fixture.cache.expireAll(.tagged("none"))
        let activity = fixture.cache.directory.activity
        #expect(activity.removalRules == 2 && activity.removals == 1)
        let report = try fixture.cache.directory.collect()
        #expect(report.removed[.cleared]?.count == 2)
        #expect(fixture.cache.directory.activity.collected[.cleared] == 2)
    }

    @Test func `removeAll removes a pending put of its process but no later one`() throws {
        let fixture = try CacheFixture { $0.writing = .behind }
        for round in 0..<20 {
            try fixture.cache.put("before \(round)", forKey: "key")
            try fixture.cache.removeAll()
            #expect(try fixture.text("key") == nil)
            try fixture.cache.put("after \(round)", forKey: "key")
            #expect(try fixture.text("key") == "after \(round)")
            fixture.cache.flush()
            #expect(try fixture.text("key") == "after \(round)")
        }
    }
}
