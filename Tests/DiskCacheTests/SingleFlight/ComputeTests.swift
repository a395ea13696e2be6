// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct ComputeTests {
    let fixture: ComputeFixture
    var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try ComputeFixture()
    }

    @Test func `a nonthrowing computation needs no try in either form`() async {
        let data = await cache.value(forKey: "a") { Data("async".utf8) }
        #expect(data.text == "async")
        func synchronously() -> Data { cache.value(forKey: "b") { Data("sync".utf8) } }
        #expect(synchronously().text == "sync")
    }

    @Test func `a computed value is stored with its compute time and not computed again`() async throws {
        let first = await cache.value(forKey: "key", options: PutOptions(expires: .seconds(60))) {
            [fixture] in
            await offload(fixture.computeBlocking("one", for: .milliseconds(20)))
        }
        let second = await cache.value(forKey: "key", orCompute: fixture.compute("two"))
        #expect([first.text, second.text] == ["one", "one"])
        let entry = try #require(try await cache.entry(forKey: "key"))
        #expect(entry.expires == fixture.clock.now + 60)
        #expect(try #require(entry.computeTime) > .milliseconds(15))
        #expect(entry.staleFor == nil)
        fixture.clock.advance(by: 60)
        #expect(await cache.value(forKey: "key", orCompute: fixture.compute("two")).text == "two")
        #expect(fixture.count == 2)
        fixture.expectNothingLeft()
    }

    @Test func `a call throws the computation's error with its own type`() async throws {
        do throws(Broken) {
            _ = try await cache.value(forKey: "key") { () async throws(Broken) in throw Broken(number: 7) }
            Issue.record("no error")
        } catch {
            #expect(error.number == 7)
        }
        func synchronously() throws(Broken) -> Data {
            try cache.value(forKey: "key") { () throws(Broken) in throw Broken(number: 8) }
        }
        #expect(throws: Broken(number: 8)) { try synchronously() }
        #expect(try await cache.get(forKey: "key") == nil)
        #expect(cache.counters[.computeFailure] == 2)
        fixture.expectNothingLeft()
    }

    @Test func `a hundred tasks and sixteen threads make one computation`() async throws {
        let gate = Gate()
        let cache = cache
        let fixture = fixture
        async let first = cache.value(forKey: "key", orCompute: fixture.compute("one", gate))
        try await eventually("the first computes") { gate.count == 1 }
        let texts = Locked<[String]>.Box([])
        let threads = Task.detached {
            await offload {
                onThreads(16) { _ in
                    let data = cache.value(forKey: "key", orCompute: fixture.computeBlocking("another"))
                    texts.value.withLock { $0.append(data.text) }
                }
            }
        }
        let tasks = (0..<100).map { _ in
            Task { await cache.value(forKey: "key", orCompute: fixture.compute("another")).text }
        }
        try await eventually("all wait") { cache.flights.inProgress.waiting == 116 }
        gate.open()
        for task in tasks { #expect(await task.value == "one") }
        await threads.value
        #expect(texts.value.withLock { $0 } == Array(repeating: "one", count: 16))
        #expect(await first.text == "one")
        #expect(fixture.count == 1)
        #expect(cache.counters[.computation] == 1)
        #expect(cache.counters[.wait] == 116)
        fixture.expectNothingLeft()
    }

    @Test func `unsynchronized callers make one computation per key`() async throws {
        for round in 0..<20 {
            await withTaskGroup { group in
                for _ in 0..<20 {
                    group.addTask { [cache, fixture] in
                        _ = await cache.value(forKey: "key \(round)", orCompute: fixture.compute("one"))
                    }
                }
            }
            #expect(fixture.count == round + 1)
        }
        fixture.expectNothingLeft()
    }

    @Test func `after an error exactly one waiter computes, with its own closure`() async throws {
        let gates = [Gate(), Gate()]
        let cache = cache
        let failing = Task {
            try await cache.value(forKey: "key") { () async throws(Broken) in
                await gates[0].pass()
                throw Broken()
            }
        }
        try await eventually("the first computes") { gates[0].count == 1 }
        let waiting = (0..<20).map { index in
            Task { [fixture] in
                await cache.value(forKey: "key", orCompute: fixture.compute("\(index)", gates[1])).text
            }
        }
        try await eventually("all wait") { cache.flights.inProgress.waiting == 20 }
        gates[0].open()
        await #expect(throws: Broken()) { try await failing.value }
        try await eventually("one of them computes") { gates[1].count == 1 }
        #expect(cache.flights.inProgress == (1, 19))
        gates[1].open()
        var texts: Set<String> = []
        for task in waiting { texts.insert(await task.value) }
        #expect(texts.count == 1, "all have the value of that one")
        #expect(fixture.count == 1)
        fixture.expectNothingLeft()
    }

    @Test func `failing computations run one at a time, and each call throws its own error`() async throws {
        let box = Locked<Int>.Box(0)
        await withTaskGroup { group in
            for index in 0..<20 {
                group.addTask { [cache] in
                    await #expect(throws: Broken(number: index)) {
                        try await cache.value(forKey: "key") { () async throws(Broken) in
                            let count = box.value.withLock {
                                $0 += 1
                                return $0
                            }
                            if count != 1 { Issue.record("two at a time") }
                            await Task.yield()
                            box.value.withLock { $0 -= 1 }
                            throw Broken(number: index)
                        }
                    }
                }
            }
        }
        #expect(cache.counters[.computation] == 20)
        fixture.expectNothingLeft()
    }

    @Test func `two caches on one directory make one computation, like two processes`() async throws {
        let other = try fixture.other()
        let gate = Gate()
        let cache = cache
        async let first = cache.value(forKey: "key", orCompute: fixture.compute("one", gate))
        try await eventually("the first computes") { gate.count == 1 }
        let tasks = (0..<10).map { _ in
            Task { [fixture] in await other.value(forKey: "key", orCompute: fixture.compute("two")).text }
        }
        let thread = Task { [fixture] in
            await offload { other.value(forKey: "key", orCompute: fixture.computeBlocking("two")).text }
        }
        try await eventually("all wait") { other.counters[.wait] == 11 }
        let holder = try await other.blocking { try $0.directory.explanation(forKey: "key").computedBy }
        #expect(holder?.processIdentifier == getpid())
        gate.open()
        for task in tasks + [thread] { #expect(await task.value == "one") }
        #expect(await first.text == "one")
        #expect(fixture.count == 1)
        #expect(try await other.blocking { try $0.directory.explanation(forKey: "key").computedBy } == nil)
        fixture.expectNothingLeft(other)
    }

    @Test func `after an error in one process exactly one caller of another computes`() async throws {
        let other = try fixture.other()
        let gate = Gate()
        let cache = cache
        let failing = Task {
            try await cache.value(forKey: "key") { () async throws(Broken) in
                await gate.pass()
                throw Broken()
            }
        }
        try await eventually("the first computes") { gate.count == 1 }
        let tasks = (0..<10).map { _ in
            Task { [fixture] in await other.value(forKey: "key", orCompute: fixture.compute("two")).text }
        }
        try await eventually("all wait") { other.counters[.wait] == 10 }
        gate.open()
        await #expect(throws: Broken()) { try await failing.value }
        for task in tasks { #expect(await task.value == "two") }
        #expect(fixture.count == 1)
        fixture.expectNothingLeft(other)
    }

    @Test func `a computation does not block other keys`() async throws {
        let gate = Gate()
        let cache = cache
        async let slow = cache.value(forKey: "slow", orCompute: fixture.compute("slow", gate))
        try await eventually("it computes") { gate.count == 1 }
        #expect(await cache.value(forKey: "fast", orCompute: fixture.compute("fast")).text == "fast")
        gate.open()
        _ = await slow
    }
}
