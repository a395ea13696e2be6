// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// A codec that takes its time, and then fails.
private struct FailingCodec: CacheCodec {
    static let time: Duration = .milliseconds(20)

    func encode(_ value: Data) throws -> Data {
        sleepThread(for: Self.time)
        throw Broken()
    }

    func decode(_ data: Data) -> Data { data }
}

/// Calls for many keys.
@Suite(.takesTurns) struct BatchTests {
    let fixture: ComputeFixture
    var cache: SharedCache { fixture.cache }
    /// The keys that closures got, call by call.
    private let asked = Locked<[[String]]>.Box([])

    init() throws {
        fixture = try ComputeFixture()
    }

    /// Returns a closure that records its keys, waits at the gate, and makes a value of each key.
    private func compute(
        _ prefix: String = "",
        _ gate: Gate? = nil
    ) -> @Sendable ([String]) async -> [String: Data] {
        { [asked] keys in
            asked.value.withLock { $0.append(keys.sorted()) }
            await gate?.pass()
            return Dictionary(uniqueKeysWithValues: keys.map { ($0, Data((prefix + $0).utf8)) })
        }
    }

    private var askedKeys: [[String]] { asked.value.withLock { $0 } }

    // MARK: Without computing

    @Test func `values are put, found and removed together`() async throws {
        try await cache.put(["a": Data("1".utf8), "b": Data("2".utf8)], options: PutOptions(tags: ["tag"]))
        let hits = try await cache.get(forKeys: ["a", "b", "c", "a"])
        #expect(hits.mapValues { $0.value.text } == ["a": "1", "b": "2"])
        #expect(hits["a"]?.entry.tags == ["tag"])
        #expect(cache.directory.activity.memoryHits == 2 && cache.counters[.miss] == 1)
        let cache = cache
        let blocking = try await offload { () throws(CacheError) in
            try cache.put(["d": Data("4".utf8)])
            return try cache.get(forKeys: Set(["b", "d"])).mapValues { $0.value.text }
        }
        #expect(blocking == ["b": "2", "d": "4"])
        #expect(try await cache.remove(forKeys: ["a", "c", "a", "d"]) == 2)
        #expect(try await cache.get(forKeys: ["a", "b", "d"]).keys.sorted() == ["b"])
        fixture.clock.advance(by: 10)
        #expect(try await cache.get(forKeys: ["b"], reading: ReadOptions(maximumAge: .seconds(9))).isEmpty)
    }

    @Test func `canonically equal keys with different bytes are all removed`() async throws {
        let keys = ["\u{e9}", "e\u{301}"]
        for key in keys { try await cache.put(Data(), forKey: key) }
        #expect(try await cache.remove(forKeys: keys + keys) == 2)
        for key in keys { #expect(try await cache.get(forKey: key) == nil) }
    }

    @Test func `an empty batch does nothing, and an empty key is an error`() async throws {
        #expect(try await cache.get(forKeys: [String]()).isEmpty)
        #expect(try await cache.values(forKeys: [String](), orCompute: compute()).isEmpty)
        try await cache.put([:])
        #expect(try await cache.remove(forKeys: [String]()) == 0)
        #expect(askedKeys.isEmpty)
        await #expect(throws: CacheError.self) { try await cache.get(forKeys: [""]) }
        await #expect(throws: CacheError.self) { try await cache.put(["": Data()]) }
    }

    // MARK: Computing

    @Test func `one closure gets all missing keys, each once`() async throws {
        try await cache.put(Data("old b".utf8), forKey: "b")
        let options = PutOptions(expires: .seconds(10), tags: ["tag"])
        let keys = ["a", "b", "c", "a"]
        let values = try await cache.values(forKeys: keys, options: options, orCompute: compute("new "))
        #expect(values.mapValues(\.text) == ["a": "new a", "b": "old b", "c": "new c"])
        #expect(askedKeys == [["a", "c"]])
        #expect(try await cache.entry(forKey: "a")?.tags == ["tag"])
        let again = try await cache.values(forKeys: keys, orCompute: compute("newer "))
        #expect(again.mapValues(\.text) == values.mapValues(\.text) && askedKeys.count == 1)
        #expect(cache.counters[.computation] == 2)
        fixture.expectNothingLeft()
    }

    @Test func `the blocking form computes in one call and ignores keys it did not ask for`() async throws {
        let (cache, asked) = (cache, asked)
        let values = try await offload { () throws in
            try cache.values(forKeys: ["a", "b"]) { keys in
                asked.value.withLock { $0.append(keys.sorted()) }
                return ["a": Data("1".utf8), "b": Data("2".utf8), "unasked": Data()]
            }
        }
        #expect(values.mapValues(\.text) == ["a": "1", "b": "2"])
        #expect(askedKeys == [["a", "b"]])
        #expect(try await cache.get(forKey: "unasked") == nil)
        fixture.expectNothingLeft()
    }

    @Test func `a batch of any size opens a bounded number of files`() async throws {
        let keys = (0..<1000).map { "key \($0)" }
        let make = compute()
        let most = Locked<Int>.Box(0)
        let values = try await cache.values(forKeys: keys) { [fixture] keys in
            most.value.withLock { $0 = max($0, fixture.lockDescriptors.count) }
            return await make(keys)
        }
        #expect(values.count == 1000 && values.allSatisfy { $0.key == $0.value.text })
        #expect(askedKeys.flatMap { $0 }.sorted() == keys.sorted())
        #expect(askedKeys.count == 8, "128 at a time")
        let open = most.value.withLock { $0 }
        #expect(open > 0 && open <= 128)
        fixture.expectNothingLeft()
    }

    @Test(arguments: [false, true])
    func `a batch computes the free keys and waits for those in progress`(_ isOther: Bool) async throws {
        let gate = Gate()
        let second = isOther ? try fixture.other() : cache
        async let first = cache.values(forKeys: ["b", "c"], orCompute: compute("first ", gate))
        try await eventually("the first computes") { gate.count == 1 }
        async let both = second.values(forKeys: ["d", "c", "b", "a"], orCompute: compute("second "))
        try await eventually("the second has computed the others") { askedKeys.count == 2 }
        #expect(askedKeys[1] == ["a", "d"])
        gate.open()
        let values = try await both.mapValues(\.text)
        #expect(values == ["a": "second a", "b": "first b", "c": "first c", "d": "second d"])
        #expect(try await first.count == 2)
        #expect(askedKeys.count == 2)
        fixture.expectNothingLeft(second)
    }

    @Test func `batches of the same keys in different orders do not deadlock`() async throws {
        let others = try (0..<3).map { _ in try fixture.other() }
        let keys = (0..<300).map { "key \($0)" }
        let (caches, make) = ([cache] + others, compute())
        let tasks = (0..<12).map { number in
            var generator = SeededGenerator(seed: UInt64(number))
            let (cache, order) = (caches[number % 4], keys.shuffled(using: &generator))
            return Task { try await cache.values(forKeys: order, orCompute: make) }
        }
        for task in tasks { #expect(try await task.value.count == 300) }
        let computed = askedKeys.flatMap { $0 }
        #expect(computed.count == 300 && Set(computed).count == 300, "each key once")
        fixture.expectNothingLeft(others[0], others[1], others[2])
    }

    @Test func `single calls and batches wait for each other's computations`() async throws {
        let gates = [Gate(), Gate()]
        async let single = cache.value(forKey: "a", orCompute: fixture.compute("single a", gates[0]))
        try await eventually("the single one computes") { gates[0].count == 1 }
        async let batch = cache.values(forKeys: ["a", "b"], orCompute: compute("batch ", gates[1]))
        try await eventually("the batch computes") { gates[1].count == 1 }
        async let late = cache.value(forKey: "b", orCompute: fixture.compute("late b"))
        try await eventually("it waits, and the batch for nobody while it computes") {
            cache.flights.inProgress.waiting == 1
        }
        gates[1].open()
        #expect(await late.text == "batch b")
        try await eventually("the batch waits for the rest") { cache.flights.inProgress.waiting == 1 }
        gates[0].open()
        #expect(await single.text == "single a")
        #expect(try await batch.mapValues(\.text) == ["a": "single a", "b": "batch b"])
        fixture.expectNothingLeft()
    }

    @Test func `a call gets another process's value while a batch for the key still computes`() async throws {
        let gates = [Gate(), Gate()]
        let other = try fixture.other()
        async let elsewhere = other.value(forKey: "a", orCompute: fixture.compute("other a", gates[0]))
        try await eventually("another process computes") { gates[0].count == 1 }
        async let batch = cache.values(forKeys: ["a", "b"], orCompute: compute("batch ", gates[1]))
        try await eventually("the batch computes the rest") { gates[1].count == 1 }
        async let single = cache.value(forKey: "a", orCompute: fixture.compute("single a"))
        try await eventually("it waits") { cache.counters[.wait] >= 2 }
        gates[0].open()
        #expect(await single.text == "other a", "the batch still computes")
        gates[1].open()
        #expect(try await batch.mapValues(\.text) == ["a": "other a", "b": "batch b"])
        #expect(await elsewhere.text == "other a")
        fixture.expectNothingLeft(other)
    }

    // MARK: Failures

    @Test func `if the closure fails its error is thrown, and waiters compute themselves`() async throws {
        let gate = Gate()
        let other = try fixture.other()
        let failing = Task { [cache] in
            try await cache.values(forKeys: ["a", "b", "c"]) { _ in
                await gate.pass()
                throw Broken(number: 4)
            }
        }
        try await eventually("it computes") { gate.count == 1 }
        async let here = cache.value(forKey: "a", orCompute: fixture.compute("here"))
        async let there = other.values(forKeys: ["b"], orCompute: compute("there "))
        try await eventually("both wait") {
            cache.flights.inProgress.waiting == 1 && other.counters[.wait] == 1
        }
        gate.open()
        await #expect(throws: Broken(number: 4)) { try await failing.value }
        #expect(await here.text == "here")
        #expect(try await there["b"]?.text == "there b")
        #expect(cache.counters[.computeFailure] == 3)
        fixture.expectNothingLeft(other)
    }

    @Test func `a failed batch falls back to stale values if all keys have one`() async throws {
        let lenient = ReadOptions(staleIfError: .seconds(50))
        let options = PutOptions(expires: .seconds(10), staleFor: .seconds(50))
        try await cache.put(["a": Data("old".utf8), "b": Data("old".utf8)], options: options)
        fixture.clock.advance(by: 10)
        let fail: @Sendable ([String]) async throws -> [String: Data] = { _ in throw Broken(number: 5) }
        let values = try await cache.values(forKeys: ["a", "b"], reading: lenient, orCompute: fail)
        #expect(values.mapValues(\.text) == ["a": "old", "b": "old"])
        await #expect(throws: Broken(number: 5)) {
            try await cache.values(forKeys: ["a", "c"], reading: lenient, orCompute: fail)
        }
        fixture.expectNothingLeft()
    }

    @Test func `a key that the closure omits has no value, and its stored value is removed`() async throws {
        try await cache.put(Data("old".utf8), forKey: "b")
        let anew = ReadOptions(recomputes: true)
        let values = try await cache.values(forKeys: ["a", "b"], reading: anew) { _ in
            ["a": Data("new".utf8)]
        }
        #expect(values.mapValues(\.text) == ["a": "new"])
        #expect(try await cache.get(forKey: "b") == nil)
        _ = try await cache.hit(forKey: "c") { _ in .nothing(for: .seconds(10)) }
        #expect(try await cache.values(forKeys: ["c"], orCompute: compute()).isEmpty)
        #expect(askedKeys.isEmpty, "of which it was noted that there is nothing")
    }

    @Test(arguments: [false, true], [Duration.zero, .milliseconds(20)])
    func `at the wait limit a batch computes the remaining keys or throws`(
        _ isOther: Bool,
        _ limit: Duration
    ) async throws {
        let gate = Gate()
        let second = isOther ? try fixture.other() : cache
        async let first = cache.values(forKeys: ["a", "b"], orCompute: compute("slow ", gate))
        try await eventually("the first computes") { gate.count == 1 }
        do {
            let failing = ReadOptions(waitLimit: limit, failsAtWaitLimit: true)
            let keys = ["a", "b", "c"]
            _ = try await second.values(forKeys: keys, reading: failing, orCompute: compute("one "))
            Issue.record("no error")
        } catch let error as CacheError {
            #expect(error.code == .timedOut)
        }
        #expect(try await second.get(forKey: "c")?.value.text == "one c", "it has computed what it could")
        let brief = ReadOptions(waitLimit: limit)
        let values = try await second.values(forKeys: ["a", "b"], reading: brief, orCompute: compute("two "))
        #expect(values.mapValues(\.text) == ["a": "two a", "b": "two b"])
        gate.open()
        #expect(try await first["a"]?.text == "slow a")
        fixture.expectNothingLeft(second)
    }

    @Test(arguments: [false, true])
    func `a task cancelled while it waits throws and leaves no lock`(_ isOther: Bool) async throws {
        let gate = Gate()
        let second = isOther ? try fixture.other() : cache
        async let first = cache.values(forKeys: ["a", "b"], orCompute: compute("slow ", gate))
        try await eventually("the first computes") { gate.count == 1 }
        let make = compute("one ")
        let task = Task { try await second.values(forKeys: ["b", "c"], orCompute: make) }
        try await eventually("it waits") { askedKeys.count == 2 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        gate.open()
        #expect(try await first.count == 2)
        fixture.expectNothingLeft(second)
    }

    @Test func `values that cannot be stored leave the other values of a batch less time to wait for space`()
        throws
    {
        let view = cache.typed(by: FailingCodec())
        var batch = FlightBatch(["a", "b", "c"], in: view, nil, ReadOptions())
        let patience = batch.patience
        let values = try batch.run { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, Data($0.utf8)) })
        }
        #expect(values.mapValues(\.text) == ["a": "a", "b": "b", "c": "c"])
        #expect(batch.patience <= patience - FailingCodec.time * 3)
        fixture.expectNothingLeft()
    }

    @Test func `a closed cache computes the whole batch`() async throws {
        _ = await cache.close()
        let values = try await cache.values(forKeys: ["a", "", "b"], orCompute: compute())
        #expect(values.mapValues(\.text) == ["a": "a", "": "", "b": "b"])
        #expect(cache.flights.inProgress == (0, 0))
    }

    // MARK: Stale values

    @Test(arguments: [false, true])
    func `stale values are refreshed together in the background`(
        _ isBlocking: Bool
    ) async throws {
        let options = PutOptions(expires: .seconds(10))
        let reading = ReadOptions(staleWhileRevalidate: .seconds(50))
        let keys = ["a", "b"]
        _ = try await cache.values(
            forKeys: keys,
            options: options,
            reading: reading,
            orCompute: compute("old ")
        )
        fixture.clock.advance(by: 10)
        let values: [String: Data]
        if isBlocking {
            let (cache, asked) = (cache, asked)
            values = try await offload { () throws in
                try cache.values(forKeys: keys, options: options, reading: reading) { keys in
                    asked.value.withLock { $0.append(keys.sorted()) }
                    return Dictionary(uniqueKeysWithValues: keys.map { ($0, Data(("new " + $0).utf8)) })
                }
            }
        } else {
            values = try await cache.values(
                forKeys: keys,
                options: options,
                reading: reading,
                orCompute: compute("new ")
            )
        }
        #expect(values.mapValues(\.text) == ["a": "old a", "b": "old b"])
        try await eventually("they are refreshed") {
            cache.counters[.refresh] == 2 && cache.flights.inProgress.flights == 0
        }
        #expect(askedKeys == [["a", "b"], ["a", "b"]])
        let fresh = try await cache.get(forKeys: keys)
        #expect(fresh.mapValues { $0.value.text } == ["a": "new a", "b": "new b"])
        fixture.expectNothingLeft()
    }

    @Test func `a typed view supports batches`() async throws {
        let view = cache.typed(Int.self)
        try await view.put(["a": 1])
        #expect(try await view.get(forKeys: ["a", "b"]).mapValues { $0.value } == ["a": 1])
        let values = try await view.values(forKeys: ["a", "b"]) { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, 2) })
        }
        #expect(values == ["a": 1, "b": 2])
        #expect(try await view.get(forKey: "b")?.value == 2)
    }
}
