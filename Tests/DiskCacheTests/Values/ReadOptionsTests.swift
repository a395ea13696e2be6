// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// A reader's conditions on a value: its maximum age, its source, and whether it is recomputed.
@Suite(.takesTurns) struct ReadOptionsTests {
    let fixture: ComputeFixture
    var cache: SharedCache { fixture.cache }
    let young = ReadOptions(maximumAge: .seconds(5))

    init() throws {
        fixture = try ComputeFixture()
    }

    private func put(_ text: String) async throws {
        try await cache.put(Data(text.utf8), forKey: "key")
    }

    // MARK: Age

    @Test func `a value is a hit up to the given maximum age, in memory and on disk`() async throws {
        try await put("one")
        fixture.clock.advance(by: 5)
        let other = try fixture.other()
        let sources: [HitSource] = [.memory, .disk]
        for (cache, source) in zip([cache, other], sources) {
            let hit = try await cache.get(forKey: "key", reading: young)
            #expect(hit.text == "one" && hit?.source == source && hit?.age == .seconds(5))
        }
        fixture.clock.advance(by: 0.001)
        for cache in [cache, other] {
            #expect(try await cache.get(forKey: "key", reading: young) == nil)
            #expect(try await cache.entry(forKey: "key", reading: young) == nil)
            let path = fixture.directory.path + "/copy"
            #expect(try await cache.copyValue(forKey: "key", toFile: path, reading: young) == nil)
            #expect(!FileManager.default.fileExists(atPath: path))
            let blocking = try await offload { [young] () throws(CacheError) in
                try cache.get(forKey: "key", reading: young)
            }
            #expect(blocking == nil)
            #expect(try await cache.get(forKey: "key").text == "one", "others take any age")
        }
        try await put("two")
        #expect(try await other.get(forKey: "key", reading: young).text == "two")
    }

    @Test func `a negative maximum age is treated as zero`() async throws {
        try await put("one")
        let none = ReadOptions(maximumAge: .seconds(-5))
        #expect(try await cache.get(forKey: "key", reading: none).text == "one")
        fixture.clock.advance(by: 1)
        #expect(try await cache.get(forKey: "key", reading: none) == nil)
    }

    @Test func `a value that is too old is recomputed and remains as a fallback`() async throws {
        try await put("one")
        fixture.clock.advance(by: 10)
        let lenient = ReadOptions(maximumAge: .seconds(5), staleIfError: .seconds(6))
        func broken(_ reading: ReadOptions) async throws -> CacheHit<Data>? {
            try await cache.hit(forKey: "key", reading: reading) { _ in throw Broken(number: 1) }
        }
        await #expect(throws: Broken(number: 1)) { _ = try await broken(young) }
        #expect(try await broken(lenient).text == "one")
        fixture.clock.advance(by: 1)
        await #expect(throws: Broken(number: 1)) { _ = try await broken(lenient) }
        for text in ["two", "three"] {
            let data = await cache.value(forKey: "key", reading: young, orCompute: fixture.compute(text))
            #expect(data.text == "two")
        }
        fixture.expectNothingLeft()
    }

    @Test func `the maximum age is relative to the start of the call, however long it waits`() async throws {
        let gate = Gate()
        let other = try fixture.other()
        async let first = other.value(forKey: "key", orCompute: fixture.compute("one", gate))
        try await eventually("it computes") { gate.count == 1 }
        let brief = ReadOptions(maximumAge: .zero)
        async let second = cache.value(forKey: "key", reading: brief, orCompute: fixture.compute("two"))
        try await eventually("the other waits") { cache.counters[.wait] == 1 }
        fixture.clock.advance(by: 60)
        gate.open()
        // Stored after the call has begun.
        #expect(await second.text == "one")
        #expect(await first.text == "one")
        fixture.expectNothingLeft(other)
    }

    // MARK: Recomputation

    @Test func `a value is recomputed on request, and the old one stays until then`() async throws {
        try await put("one")
        let gate = Gate()
        let anew = ReadOptions(recomputes: true)
        async let second = cache.value(forKey: "key", reading: anew, orCompute: fixture.compute("two", gate))
        try await eventually("it computes") { gate.count == 1 }
        #expect(try await cache.get(forKey: "key").text == "one")
        #expect(await cache.value(forKey: "key", orCompute: fixture.compute("three")).text == "one")
        gate.open()
        #expect(await second.text == "two")
        #expect(try await cache.get(forKey: "key", reading: anew).text == "two", "a get computes nothing")
        #expect(fixture.count == 1)
        fixture.expectNothingLeft()
    }

    @Test func `a recomputation works even if the clock was set back since the last put`()
        async throws
    {
        try await put("one")
        fixture.clock.advance(by: -3600)
        let anew = ReadOptions(recomputes: true)
        let data = await cache.value(forKey: "key", reading: anew, orCompute: fixture.compute("two"))
        #expect(data.text == "two")
        fixture.clock.advance(by: 3600)
        _ = try await cache.hit(forKey: "key", reading: anew) { _ in .nothing(for: .seconds(10)) }
        fixture.clock.advance(by: -3600)
        let hit = try await cache.hit(forKey: "key", reading: anew) { _ in .value(Data("three".utf8)) }
        #expect(hit.text == "three")
        fixture.expectNothingLeft()
    }

    @Test func `concurrent recomputations share one computation, even across processes`() async throws {
        try await put("one")
        let gate = Gate()
        let other = try fixture.other()
        let anew = ReadOptions(recomputes: true)
        async let leader = cache.value(forKey: "key", reading: anew, orCompute: fixture.compute("two", gate))
        try await eventually("it computes") { gate.count == 1 }
        async let joined = cache.value(forKey: "key", reading: anew, orCompute: fixture.compute("three"))
        async let elsewhere = other.value(forKey: "key", reading: anew, orCompute: fixture.compute("four"))
        try await eventually("both wait") {
            cache.flights.inProgress.waiting == 1 && other.counters[.wait] == 1
        }
        // A value stored in the millisecond of their calls would seem older, because records are precise to a millisecond.
        fixture.clock.advance(by: 1)
        gate.open()
        #expect(await [leader.text, joined.text, elsewhere.text] == ["two", "two", "two"])
        #expect(fixture.count == 1)
        fixture.expectNothingLeft(other)
    }

    @Test func `after a failed recomputation the old value stays and is returned if accepted`() async throws {
        try await put("one")
        let lenient = ReadOptions(recomputes: true, staleIfError: .seconds(1))
        let strict = ReadOptions(recomputes: true)
        let fail: @Sendable (Computation<Data>) throws -> Computed<Data> = { _ in throw Broken(number: 2) }
        let old = try await cache.hit(forKey: "key", reading: lenient, orCompute: fail)
        #expect(old.text == "one" && old?.isStale == false)
        await #expect(throws: Broken(number: 2)) {
            try await cache.hit(forKey: "key", reading: strict, orCompute: fail)
        }
        #expect(try await cache.get(forKey: "key").text == "one")
    }

    // MARK: Source

    @Test func `a cache-only read computes nothing, and a stale value is a hit if accepted`()
        async throws
    {
        let cached = ReadOptions(source: .cache)
        func hit(_ reading: ReadOptions) async throws -> CacheHit<Data>? {
            let compute = fixture.compute("new")
            return try await cache.hit(forKey: "key", reading: reading) { _ in .value(await compute()) }
        }
        #expect(try await hit(cached) == nil)
        let options = PutOptions(expires: .seconds(10), staleFor: .seconds(10))
        try await cache.put(Data("one".utf8), forKey: "key", options: options)
        #expect(try await hit(cached).text == "one")
        fixture.clock.advance(by: 10)
        #expect(try await hit(cached) == nil)
        let stale = try await hit(ReadOptions(acceptsStale: true, source: .cache))
        #expect(stale.text == "one" && stale?.isStale == true && fixture.count == 0)
        #expect(try await hit(ReadOptions(acceptsStale: true)).text == "one", "nor where it may be computed")
        #expect(fixture.count == 0)
        let data = await cache.value(forKey: "key", reading: cached, orCompute: fixture.compute("two"))
        #expect(data.text == "two")
    }

    @Test func `a memory-only read does not access the disk`() async throws {
        try await put("one")
        let inMemory = ReadOptions(source: .memory)
        let other = try fixture.other()
        #expect(try await cache.get(forKey: "key", reading: inMemory)?.source == .memory)
        #expect(try await cache.entry(forKey: "key", reading: inMemory)?.size == 3)
        for _ in 0..<2 {
            #expect(try await other.get(forKey: "key", reading: inMemory) == nil)
            #expect(try await other.entry(forKey: "key", reading: inMemory) == nil)
        }
        #expect(other.counters[.hit] == 0 && other.counters[.miss] == 4)
        let path = fixture.directory.path + "/copy"
        #expect(try await cache.copyValue(forKey: "key", toFile: path, reading: inMemory) == nil)
        #expect(try await other.get(forKey: "key")?.source == .disk)
        #expect(try await other.get(forKey: "key", reading: inMemory)?.source == .memory)
        try await put("two")
        #expect(try await other.get(forKey: "key", reading: inMemory) == nil, "another one has replaced it")
        #expect(try await other.hit(forKey: "key", reading: inMemory) { _ in .value(Data()) } == nil)
        let view = other.typed([Int].self)
        #expect(try await view.get(forKey: "key", reading: inMemory) == nil)
    }
}
