// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

/// The information that a closure gets and the outcomes that it can return.
@Suite(.takesTurns) struct ComputeOutcomeTests {
    let fixture: ComputeFixture
    var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try ComputeFixture()
    }

    /// Calls `hit` with a closure whose calls are counted.
    @discardableResult
    func hit(
        _ reading: ReadOptions = ReadOptions(),
        in other: SharedCache? = nil,
        at gate: Gate? = nil,
        orCompute decide: @escaping @Sendable (Computation<Data>) throws -> Computed<Data>
    ) async throws -> CacheHit<Data>? {
        let compute = fixture.compute("", gate)
        return try await (other ?? cache).hit(forKey: "key", reading: reading) { computation in
            _ = await compute()
            return try decide(computation)
        }
    }

    func put(_ text: String) async throws {
        let options = PutOptions(
            expires: .seconds(10),
            staleFor: .seconds(100),
            entityTag: "\"v1\"",
            tags: ["tag"],
            metadata: ["name": "value"]
        )
        try await cache.put(Data(text.utf8), forKey: "key", options: options)
    }

    // MARK: Values

    @Test func `a closure's options are stored with its value, and the hit reports its source`()
        async throws
    {
        let hit = try await hit { _ in
            .value(Data("one".utf8), PutOptions(expires: .seconds(10), entityTag: "\"v1\"", tags: ["tag"]))
        }
        #expect(hit.text == "one")
        #expect(hit?.source == .computed && hit?.isStale == false && hit?.age == .zero)
        #expect(hit?.entry.entityTag == "\"v1\"" && hit?.entry.digest == Digest(of: Data("one".utf8)))
        let entry = try #require(try await cache.entry(forKey: "key"))
        #expect(entry.entityTag == "\"v1\"" && entry.tags == ["tag"])
        #expect(entry.created == hit?.entry.created && entry.expires == hit?.entry.expires)
        fixture.clock.advance(by: 4)
        let again = try await self.hit { _ in .value(Data("two".utf8)) }
        #expect(again.text == "one" && again?.source == .memory && again?.age == .seconds(4))
        let other = try fixture.other()
        #expect(try await self.hit(in: other) { _ in .value(Data("two".utf8)) }?.source == .disk)
        fixture.clock.advance(by: 6)
        #expect(try await self.hit { _ in .value(Data("three".utf8)) }.text == "three")
        #expect(fixture.count == 2)
        fixture.expectNothingLeft(other)
    }

    @Test func `the blocking form returns the same values and sources`() async throws {
        let cache = cache
        let (first, second) = try await offload { () throws in
            (
                try cache.hit(forKey: "key") { _ in .value(Data("one".utf8)) },
                try cache.hit(forKey: "key") { _ in .value(Data("two".utf8)) }
            )
        }
        #expect(first.text == "one" && first?.source == .computed)
        #expect(second.text == "one" && second?.source == .memory)
        fixture.expectNothingLeft()
    }

    @Test func `a waiter's hit is joined, and another process's hit comes from disk`() async throws {
        let gate = Gate()
        let other = try fixture.other()
        async let leader = hit(at: gate) { _ in .value(Data("one".utf8)) }
        try await eventually("one computes") { gate.count == 1 }
        async let joined = hit { _ in .value(Data("two".utf8)) }
        async let elsewhere = hit(in: other) { _ in .value(Data("three".utf8)) }
        try await eventually("one waits here, one there") {
            cache.flights.inProgress.waiting == 1 && other.counters[.wait] == 1
        }
        gate.open()
        #expect(try await leader?.source == .computed)
        let (second, third) = (try await joined, try await elsewhere)
        #expect(second.text == "one" && second?.source == .joined)
        #expect(third.text == "one" && third?.source == .disk)
        #expect(fixture.count == 1)
        fixture.expectNothingLeft(other)
    }

    @Test func `a closure gets the reason for its call and the previous value`() async throws {
        let told = Locked<[String]>.Box([])
        let tell: @Sendable (Computation<Data>) -> Computed<Data> = { computation in
            let words = "\(computation.key) \(computation.reason) \(computation.previous.text)"
            told.value.withLock { $0.append(words) }
            let terms = PutOptions(expires: .seconds(10), staleFor: .seconds(100))
            return .value(Data("\(words.count)".utf8), terms)
        }
        try await hit(orCompute: tell)
        try await put("old")
        try await hit(ReadOptions(recomputes: true), orCompute: tell)
        try await put("older")
        fixture.clock.advance(by: 5)
        try await hit(ReadOptions(maximumAge: .seconds(4)), orCompute: tell)
        try await put("oldest")
        fixture.clock.advance(by: 10)
        try await hit(orCompute: tell)
        try await put("stale")
        fixture.clock.advance(by: 10)
        let reading = ReadOptions(staleWhileRevalidate: .seconds(50))
        #expect(try await hit(reading, orCompute: tell).text == "stale")
        try await eventually("it is refreshed") { told.value.withLock { $0.count } == 5 }
        try await eventually("nothing is under way") { cache.flights.inProgress.flights == 0 }
        try await put("gone")
        fixture.clock.advance(by: 200)
        try await hit(orCompute: tell)
        #expect(
            told.value.withLock { $0 } == [
                "key absent nothing", "key forced old", "key expired older", "key expired oldest",
                "key stale stale", "key absent nothing",
            ]
        )
        fixture.expectNothingLeft()
    }

    // MARK: Unkept

    @Test func `an unkept value is shared within the process; other processes compute`() async throws {
        let gates = [Gate(), Gate()]
        let other = try fixture.other()
        async let leader = hit(at: gates[0]) { _ in .unkept(Data("one".utf8)) }
        try await eventually("one computes") { gates[0].count == 1 }
        async let joined = hit { _ in .unkept(Data("two".utf8)) }
        async let elsewhere = hit(in: other, at: gates[1]) { _ in .unkept(Data("three".utf8)) }
        try await eventually("one waits here, one there") {
            cache.flights.inProgress.waiting == 1 && other.counters[.wait] == 1
        }
        gates[0].open()
        let (first, second) = (try await leader, try await joined)
        #expect(first.text == "one" && first?.source == .computed)
        #expect(second.text == "one" && second?.source == .joined)
        #expect(first?.entry.size == 3 && first?.entry.digest == Digest(of: Data("one".utf8)))
        try await eventually("the other computes") { gates[1].count == 1 }
        gates[1].open()
        #expect(try await elsewhere.text == "three")
        #expect(try await cache.get(forKey: "key") == nil)
        #expect(cache.counters[.put] + other.counters[.put] == 0)
        fixture.expectNothingLeft(other)
    }

    @Test func `other processes compute a memory-only value concurrently, not in turn`()
        async throws
    {
        let gates = [Gate(), Gate()]
        let others = [try fixture.other(), try fixture.other()]
        let only = PutOptions(keeps: .memoryOnly)
        async let first = hit(at: gates[0]) { _ in .value(Data("one".utf8), only) }
        try await eventually("it computes") { gates[0].count == 1 }
        async let second = hit(in: others[0], at: gates[1]) { _ in .value(Data("two".utf8), only) }
        async let third = hit(in: others[1], at: gates[1]) { _ in .value(Data("two".utf8), only) }
        try await eventually("both wait") { others.allSatisfy { $0.counters[.wait] == 1 } }
        gates[0].open()
        #expect(try await first.text == "one")
        try await eventually("both compute at the same time") { gates[1].count == 2 }
        gates[1].open()
        #expect(try await [second.text, third.text] == ["two", "two"])
        fixture.expectNothingLeft(others[0], others[1])
    }

    @Test func `an unkept value leaves the stored value unchanged`() async throws {
        try await put("old")
        let hit = try await hit(ReadOptions(recomputes: true)) { _ in .unkept(Data("new".utf8)) }
        #expect(hit.text == "new")
        #expect(try await cache.get(forKey: "key").text == "old")
    }

    @Test(arguments: BrokenCache.allCases)
    func `a broken cache still returns the computed value`(
        _ broken: BrokenCache
    ) async throws {
        try broken.breakCache(fixture)
        let hit = try await cache.hit(forKey: broken.key) { _ in .value(Data("one".utf8), broken.options) }
        #expect(hit.text == "one" && hit?.source == .computed)
        #expect(hit?.entry.digest == Digest(of: Data("one".utf8)) && hit?.entry.size == 3)
        let nothing = try await cache.hit(forKey: broken.key + "2") { _ in .nothing(for: .seconds(5)) }
        #expect(nothing == nil)
    }

    // MARK: Unchanged

    @Test func `an unchanged value gets new options without being rewritten`() async throws {
        try await put("page")
        fixture.clock.advance(by: 20)
        let written = cache.counters[.bytesWritten]
        let files = Set(fixture.directory.files(below: "cache/objects"))
        let hit = try await hit { computation in
            #expect(computation.previous?.isStale == true)
            #expect(computation.previous?.entry.entityTag == "\"v1\"")
            return .unchanged(PutOptions(expires: .seconds(30), metadata: ["other": "1"]))
        }
        #expect(hit.text == "page" && hit?.source == .computed && hit?.isStale == false && hit?.age == .zero)
        #expect(cache.counters[.bytesWritten] == written)
        #expect(Set(fixture.directory.files(below: "cache/objects")) == files)
        let other = try fixture.other()
        for cache in [cache, other] {
            let entry = try #require(try await cache.get(forKey: "key")?.entry)
            #expect(entry.entityTag == "\"v1\"" && entry.tags == ["tag"], "what was left out stays")
            #expect(entry.metadata == ["other": "1"] && entry.staleFor == .seconds(100))
            #expect(entry.expires == fixture.clock.now.addingTimeInterval(30))
            #expect(entry.created == fixture.clock.now, "it is as good as stored now")
        }
        fixture.clock.advance(by: 30)
        #expect(try await cache.get(forKey: "key") == nil)
    }

    @Test func `an unchanged result without a previous value throws`() async throws {
        for reading in [ReadOptions(), ReadOptions(recomputes: true)] {
            do {
                try await hit(reading) { _ in .unchanged() }
                Issue.record("no error")
            } catch let error as CacheError {
                #expect(error.code == .invalidArgument)
            }
        }
        fixture.expectNothingLeft()
    }

    /// Valid options and invalid ones, because failures of the cache must not be visible either.
    @Test(arguments: [PutOptions(), PutOptions(expires: .after(.seconds(-1)))])
    func `a call that begins after a put does not get an older unchanged value`(
        terms: PutOptions
    ) async throws {
        let (gate, again) = (Gate(), ReadOptions(recomputes: true))
        try await put("old")
        async let first = hit(again, at: gate) { _ in .unchanged(terms) }
        try await eventually("it computes") { gate.count == 1 }
        try await put("new")
        async let second = hit(again) { _ in .unchanged() }
        try await eventually("it waits") { cache.flights.inProgress == (1, 1) }
        gate.open()
        #expect(try await first.text == "old", "it began before the put")
        #expect(try await second.text == "new")
        #expect(fixture.count == 2)
        #expect(try await cache.get(forKey: "key").text == "new")
        fixture.expectNothingLeft()
    }

    @Test func `a download that begins after a put does not get an older unchanged value`() async throws {
        let (gate, again, downloads) = (Gate(), ReadOptions(recomputes: true), cache.downloads)
        try await downloads.put(Data("old".utf8), forKey: "key")
        async let first = hit(again, in: downloads, at: gate) { _ in .unchanged() }
        try await eventually("it computes") { gate.count == 1 }
        try await downloads.put(Data("new".utf8), forKey: "key")
        async let second = hit(again, in: downloads) { _ in .unchanged() }
        try await eventually("it waits") { cache.flights.inProgress == (1, 1) }
        gate.open()
        #expect(try await [first.text, second.text] == ["old", "new"])
    }

    @Test(arguments: [PutOptions(), PutOptions(expires: .after(.seconds(-1)))])
    func `all waiters get an unchanged value if no other value was stored meanwhile`(
        terms: PutOptions
    ) async throws {
        let (gate, again) = (Gate(), ReadOptions(recomputes: true))
        try await put("old")
        async let first = hit(again, at: gate) { _ in .unchanged(terms) }
        try await eventually("it computes") { gate.count == 1 }
        async let second = hit(again) { _ in .unchanged() }
        try await eventually("it waits") { cache.flights.inProgress == (1, 1) }
        gate.open()
        #expect(try await [first.text, second.text] == ["old", "old"])
        #expect(fixture.count == 1)
        fixture.expectNothingLeft()
    }

    @Test func `an unchanged result keeps another process's new value and restores a removed one`()
        async throws
    {
        let cache = cache
        let other = try fixture.other()
        try await put("old")
        fixture.clock.advance(by: 10)
        let meanwhile = try await offload { () throws in
            try cache.hit(forKey: "key") { _ in
                try other.put(Data("new".utf8), forKey: "key")
                return .unchanged(PutOptions(expires: .seconds(50)))
            }
        }
        #expect(meanwhile.text == "old")
        #expect(try await cache.get(forKey: "key").text == "new")
        try await put("old")
        fixture.clock.advance(by: 10)
        let removed = try await offload { () throws in
            try cache.hit(forKey: "key") { _ in
                try other.remove(forKey: "key")
                return .unchanged(PutOptions(expires: .seconds(50)))
            }
        }
        #expect(removed.text == "old")
        let entry = try await cache.get(forKey: "key")
        #expect(entry.text == "old" && entry?.entry.entityTag == "\"v1\"")
        fixture.expectNothingLeft(other)
    }

    // MARK: Negative results

    @Test func `all processes remember a negative result for the given time`() async throws {
        let other = try fixture.other()
        try await put("old")
        #expect(try await hit(ReadOptions(recomputes: true)) { _ in .nothing(for: .seconds(5)) } == nil)
        fixture.clock.advance(by: 4.9)
        for cache in [cache, other] {
            #expect(try await hit(in: cache) { _ in .value(Data("new".utf8)) } == nil)
            #expect(try await cache.get(forKey: "key") == nil)
            #expect(try await cache.get(forKey: "key", reading: ReadOptions(acceptsStale: true)) == nil)
            #expect(try await cache.entry(forKey: "key") == nil)
            let (isThere, entries, state) = try await cache.blocking { cache in
                (
                    try cache.contains(forKey: "key"), Array(try cache.entries()).count,
                    try cache.directory.explanation(forKey: "key").state
                )
            }
            #expect(!isThere && entries == 0 && state == .nothing)
            #expect(cache.counters[.negativeHit] == 3 && cache.directory.activity.negativeHits == 3)
        }
        #expect(fixture.count == 1)
        fixture.clock.advance(by: 0.1)
        #expect(try await hit(in: other) { _ in .value(Data("new".utf8)) }.text == "new")
        #expect(try await cache.get(forKey: "key").text == "new")
        fixture.expectNothingLeft(other)
    }

    @Test func `a put, an update or a call that must return a value ends a negative result`() async throws {
        for key in ["put", "absent", "update", "value"] {
            _ = try await cache.hit(forKey: key) { _ in .nothing(for: .seconds(50)) }
        }
        try await cache.put(Data("new".utf8), forKey: "put")
        #expect(try await cache.blocking { try $0.putIfAbsent(Data("new".utf8), forKey: "absent") })
        let updated = try await cache.update(forKey: "update") { old in
            #expect(old?.value == nil)
            return .value(Data("new".utf8))
        }
        #expect(updated?.text == "new")
        #expect(await cache.value(forKey: "value", orCompute: fixture.compute("new")).text == "new")
        for key in ["put", "absent", "update", "value"] {
            #expect(try await cache.get(forKey: key).text == "new")
        }
    }

    @Test func `expiring, touching or removing a negative result returns false, but removal deletes it`()
        async throws
    {
        try await hit { _ in .nothing(for: .seconds(50)) }
        #expect(try await cache.blocking { try $0.setExpiration(.days(1), forKey: "key") } == false)
        #expect(try await cache.blocking { try $0.touch(forKey: "key") } == false)
        #expect(try await cache.remove(forKey: "key") == false)
        #expect(try await hit { _ in .value(Data("new".utf8)) }.text == "new")
    }

    @Test func `a negative result for zero time removes the value and is not remembered`() async throws {
        try await put("old")
        #expect(try await hit(ReadOptions(recomputes: true)) { _ in .nothing(for: .zero) } == nil)
        #expect(try await cache.get(forKey: "key") == nil)
        #expect(try await hit { _ in .value(Data("new".utf8)) }.text == "new")
        #expect(fixture.count == 2)
    }

    @Test func `a waiter that must return a value computes it after a negative result`() async throws {
        let gate = Gate()
        async let leader = hit(at: gate) { _ in .nothing(for: .seconds(50)) }
        try await eventually("one computes") { gate.count == 1 }
        async let value = cache.value(forKey: "key", orCompute: fixture.compute("new"))
        async let joined = hit { _ in .value(Data("other".utf8)) }
        try await eventually("both wait") { cache.flights.inProgress.waiting == 2 }
        gate.open()
        #expect(try await leader == nil)
        #expect(await value.text == "new")
        #expect(try await joined == nil)
        #expect(fixture.count == 2)
        fixture.expectNothingLeft()
    }

    // MARK: Views

    @Test func `a typed view's closures can return every kind of outcome`() async throws {
        let view = cache.typed([Int].self)
        let first = try await view.hit(forKey: "key") { _ in
            .value([1, 2], PutOptions(expires: .seconds(10), staleFor: .seconds(50)))
        }
        #expect(first?.value == [1, 2] && first?.source == .computed)
        #expect(try await view.get(forKey: "key")?.source == .memory)
        fixture.clock.advance(by: 10)
        let second = try await view.hit(forKey: "key") { computation in
            #expect(computation.previous?.value == [1, 2])
            return .unchanged(PutOptions(expires: .seconds(10)))
        }
        #expect(second?.value == [1, 2])
        #expect(try await view.get(forKey: "key")?.value == [1, 2])
        let unkept = try await view.hit(forKey: "other") { _ in .unkept([3]) }
        #expect(unkept?.entry.digest == Digest(of: Data("[3]".utf8)))
        #expect(try await view.hit(forKey: "none") { _ in .nothing(for: .seconds(5)) } == nil)
        #expect(try await view.get(forKey: "none") == nil)
        fixture.expectNothingLeft()
    }
}
