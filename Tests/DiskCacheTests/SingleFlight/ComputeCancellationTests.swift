// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct ComputeCancellationTests {
    let fixture: ComputeFixture
    var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try ComputeFixture()
    }

    /// Starts a caller whose closure throws if its task is cancelled.
    func caller(_ cache: SharedCache, _ text: String) -> Task<String, any Error> {
        Task { [fixture] in
            try await cache.value(forKey: "key") { () async throws(CancellationError) in
                if Task.isCancelled { throw CancellationError() }
                return await fixture.compute(text)()
            }.text
        }
    }

    @Test func `a waiter that is cancelled throws at once, and the others keep waiting`() async throws {
        let gate = Gate()
        let cache = cache
        let leader = Task { [fixture] in
            await cache.value(forKey: "key", orCompute: fixture.compute("one", gate)).text
        }
        try await eventually("it computes") { gate.count == 1 }
        let waiting = (0..<10).map { caller(cache, "waiter \($0)") }
        try await eventually("all wait") { cache.flights.inProgress.waiting == 10 }
        for task in waiting[..<5] { task.cancel() }
        for task in waiting[..<5] {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(cache.flights.inProgress == (1, 5), "while the computation goes on")
        gate.open()
        for task in waiting[5...] { #expect(try await task.value == "one") }
        #expect(await leader.value == "one")
        #expect(fixture.count == 1)
        fixture.expectNothingLeft()
    }

    @Test func `a caller that waits for another process can be cancelled`() async throws {
        let other = try fixture.other()
        let gate = Gate()
        let cache = cache
        let leader = Task { [fixture] in
            await cache.value(forKey: "key", orCompute: fixture.compute("one", gate)).text
        }
        try await eventually("it computes") { gate.count == 1 }
        let waiting = (0..<3).map { caller(other, "waiter \($0)") }
        try await eventually("one waits for the lock, two for it") { other.counters[.wait] == 3 }
        for task in waiting { task.cancel() }
        for task in waiting {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(fixture.lockDescriptors.count == 1, "the computing one's")
        gate.open()
        #expect(await leader.value == "one")
        fixture.expectNothingLeft(other)
    }

    @Test func `if the leader is cancelled, exactly one waiter computes`() async throws {
        let cache = cache
        let gate = Gate()
        let leader = Task {
            try await cache.value(forKey: "key") {
                await gate.pass()
                try await Task.sleep(for: .seconds(3600))
                return Data()
            }
        }
        try await eventually("it computes") { gate.count == 1 }
        let waiting = (0..<10).map { caller(cache, "waiter \($0)") }
        try await eventually("all wait") { cache.flights.inProgress.waiting == 10 }
        leader.cancel()
        gate.open()
        await #expect(throws: CancellationError.self) { try await leader.value }
        var texts: Set<String> = []
        for task in waiting { texts.insert(try await task.value) }
        #expect(texts.count == 1)
        #expect(fixture.count == 1)
        fixture.expectNothingLeft()
    }

    @Test func `a value that a cancelled task computes anyway is stored`() async throws {
        let cache = cache
        let gate = Gate()
        let task = Task { [fixture] in
            await cache.value(forKey: "key", orCompute: fixture.compute("one", gate)).text
        }
        try await eventually("it computes") { gate.count == 1 }
        task.cancel()
        gate.open()
        #expect(await task.value == "one")
        #expect(try await cache.get(forKey: "key")?.value.text == "one")
    }

    @Test func `if all callers are cancelled, their locks, closures and cache are released`() async throws {
        weak var leftCache: SharedCache?
        weak var left: Gate?
        func run() async throws {
            let other = try fixture.other()
            let gate = Gate()
            leftCache = other
            left = gate
            let tasks = (0..<50).map { index in
                Task {
                    try await other.value(forKey: "key") { () async throws(CancellationError) in
                        if Task.isCancelled { throw CancellationError() }
                        await gate.pass()
                        throw CancellationError()
                    }
                }
            }
            try await eventually("all wait") { other.flights.inProgress.waiting == 49 && gate.count == 1 }
            for task in tasks.reversed() { task.cancel() }
            gate.open()
            for task in tasks {
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            fixture.expectNothingLeft(other)
        }
        try await run()
        try await eventually("closures and continuations are gone") { leftCache == nil && left == nil }
    }

    @Test func `a hit call that is cancelled while it waits throws CancellationError`() async throws {
        let cache = cache
        let gate = Gate()
        let leader = Task { [fixture] in
            await cache.value(forKey: "key", orCompute: fixture.compute("one", gate)).text
        }
        try await eventually("it computes") { gate.count == 1 }
        let task = Task { [fixture] in
            let compute = fixture.compute("two")
            return try await cache.hit(forKey: "key") { _ in .value(await compute()) }
        }
        try await eventually("it waits") { cache.flights.inProgress.waiting == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(fixture.count == 1)
        gate.open()
        _ = await leader.value
        fixture.expectNothingLeft()
    }
}
