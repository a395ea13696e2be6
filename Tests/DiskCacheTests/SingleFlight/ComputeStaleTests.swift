// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct ComputeStaleTests {
    let fixture: ComputeFixture
    var cache: SharedCache { fixture.cache }
    let stale = ReadOptions(staleWhileRevalidate: .seconds(100))

    init() throws {
        fixture = try ComputeFixture()
    }

    func value(
        _ text: String,
        _ options: ReadOptions,
        in other: SharedCache? = nil,
        _ gate: Gate? = nil
    ) async -> String {
        await (other ?? cache).value(
            forKey: "key",
            options: PutOptions(expires: .seconds(10)),
            reading: options,
            orCompute: fixture.compute(text, gate)
        ).text
    }

    func fail(_ options: ReadOptions, _ number: Int = 0) async throws -> String {
        try await cache.value(forKey: "key", options: PutOptions(expires: .seconds(10)), reading: options) {
            () async throws(Broken) in throw Broken(number: number)
        }.text
    }

    @Test func `a stale value is returned at once while one caller of all processes refreshes it`()
        async throws
    {
        let other = try fixture.other()
        let gate = Gate()
        #expect(await value("one", stale) == "one")
        fixture.clock.advance(by: 10)
        for _ in 0..<20 {
            #expect(await value("two", stale, gate) == "one")
            #expect(await value("three", stale, in: other, gate) == "one")
        }
        let synchronous = await offload { [cache, fixture, stale] in
            cache.value(forKey: "key", reading: stale, orCompute: fixture.computeBlocking("four"))
        }
        #expect(synchronous.text == "one")
        try await eventually("one refreshes") { gate.count == 1 }
        gate.open()
        try await eventually("it is done") { try cache.get(forKey: "key") != nil }
        let text = try #require(try await cache.get(forKey: "key")?.value.text)
        #expect(["two", "three"].contains(text))
        #expect(await value("five", stale, in: other) == text)
        try await eventually("nothing is under way") {
            cache.flights.inProgress.flights + other.flights.inProgress.flights == 0
        }
        #expect(fixture.count == 2)
        #expect(cache.counters[.refresh] + other.counters[.refresh] == 1)
        fixture.expectNothingLeft(other)
    }

    @Test func `the synchronous form refreshes on another thread`() async throws {
        #expect(await value("one", stale) == "one")
        fixture.clock.advance(by: 10)
        let old = await offload { [cache, fixture, stale] in
            cache.value(forKey: "key", reading: stale, orCompute: fixture.computeBlocking("two"))
        }
        #expect(old.text == "one")
        try await eventually("it is refreshed") { try cache.get(forKey: "key")?.value.text == "two" }
    }

    @Test func `a refresh by the synchronous form needs no thread of Swift's pool`() async throws {
        #expect(await value("one", stale) == "one")
        fixture.clock.advance(by: 10)
        // More tasks than threads in the pool; each blocks one until the refresh has ended.
        let tasks = (0..<4 * ProcessInfo.processInfo.activeProcessorCount).map { _ in
            Task { [cache, fixture, stale] in Self.refreshAndWait(cache, fixture, stale) }
        }
        for task in tasks { #expect(await task.value == "two") }
        #expect(fixture.count == 2)
    }

    /// Refreshes and waits in a synchronous function, which blocks the calling task's thread.
    private static func refreshAndWait(
        _ cache: SharedCache,
        _ fixture: ComputeFixture,
        _ stale: ReadOptions
    ) -> String {
        let compute = fixture.computeBlocking("two", for: .milliseconds(100))
        _ = cache.value(forKey: "key", reading: stale, orCompute: compute)
        // With a limit, so that a failure does not hang.
        let limit = ReadOptions(waitLimit: .seconds(20), failsAtWaitLimit: true)
        do {
            return try cache.hit(forKey: "key", reading: limit) { _ in .value(compute()) }.text
        } catch {
            return "\(error)"
        }
    }

    @Test func `a stale value is returned only within the window and only on request`() async throws {
        #expect(await value("one", stale) == "one")
        fixture.clock.advance(by: 10)
        #expect(await value("two", ReadOptions()) == "two", "not asked for")
        fixture.clock.advance(by: 110)
        #expect(await value("three", stale) == "three")
        fixture.clock.advance(by: 60)
        #expect(await value("four", ReadOptions(staleWhileRevalidate: .seconds(50))) == "four")
    }

    @Test func `a sliding value becomes stale relative to its last access`() async throws {
        let options = stale
        let compute: @Sendable (String) -> @Sendable () async -> Data = { [fixture] in fixture.compute($0) }
        func value(_ text: String) async -> String {
            await cache.value(
                forKey: "key",
                options: PutOptions(expires: .seconds(160), onAccess: .renew),
                reading: options,
                orCompute: compute(text)
            ).text
        }
        #expect(await value("one") == "one")
        for _ in 0..<10 {
            fixture.clock.advance(by: 100)
            #expect(await value("two") == "one")
        }
        fixture.clock.advance(by: 165)
        #expect(await value("three") == "one", "old, and refreshed")
        try await eventually("it is refreshed") { try cache.get(forKey: "key")?.value.text == "three" }
    }

    @Test func `a failed refresh leaves the stale value and is counted`() async throws {
        #expect(await value("one", stale) == "one")
        fixture.clock.advance(by: 10)
        #expect(try await fail(stale) == "one")
        try await eventually("it has failed") { cache.counters[.computeFailure] == 1 }
        try await eventually("nothing is under way") { cache.flights.inProgress.flights == 0 }
        #expect(await value("two", stale) == "one")
        try await eventually("the next one succeeds") { try cache.get(forKey: "key")?.value.text == "two" }
    }

    @Test func `a stale value is returned after a failure, within the given window`() async throws {
        let options = ReadOptions(staleIfError: .seconds(100))
        #expect(await value("one", options) == "one")
        fixture.clock.advance(by: 50)
        #expect(try await fail(options) == "one")
        #expect(cache.counters[.computation] == 2, "it was tried")
        await #expect(throws: Broken()) { try await fail(ReadOptions()) }
        let synchronous = await offload { [cache] in
            Result { () throws(Broken) in
                try cache.value(forKey: "key", reading: options) { () throws(Broken) in throw Broken() }
            }
        }
        #expect(try synchronous.get().text == "one")
        fixture.clock.advance(by: 60)
        await #expect(throws: Broken()) { try await fail(options) }
    }

    @Test func `the longest window determines how long a stale value is kept`() async throws {
        let options = ReadOptions(staleWhileRevalidate: .seconds(5), staleIfError: .seconds(20))
        let terms = PutOptions(expires: .seconds(1), staleFor: .seconds(7))
        _ = await cache.value(
            forKey: "a",
            options: terms,
            reading: options,
            orCompute: fixture.compute("")
        )
        _ = await cache.value(
            forKey: "b",
            options: terms,
            orCompute: fixture.compute("")
        )
        #expect(try await cache.entry(forKey: "a")?.staleFor == .seconds(20))
        #expect(try await cache.entry(forKey: "b")?.staleFor == .seconds(7))
    }

    @Test func `an expensive value that expires soon is refreshed early`() async throws {
        try await cache.put(
            Data("one".utf8),
            forKey: "key",
            options: PutOptions(expires: .seconds(10), computeTime: .seconds(3600))
        )
        #expect(await value("two", ReadOptions()) == "one")
        #expect(fixture.count == 0)
        // 10 s before its end a value that takes an hour to compute is almost surely due: e^(−10/3600000).
        #expect(await value("two", ReadOptions(earlyRefresh: 1000)) == "one")
        try await eventually("it is refreshed") { try cache.get(forKey: "key")?.value.text == "two" }
        #expect(cache.counters[.refresh] == 1)
        #expect(await value("three", ReadOptions(earlyRefresh: 1)) == "two", "that one was cheap")
        #expect(fixture.count == 1)
    }

    @Test func `a remembered error is thrown again without a computation`() async throws {
        let options = ReadOptions(failureMemory: .seconds(10))
        await #expect(throws: Broken(number: 1)) { try await fail(options, 1) }
        await #expect(throws: Broken(number: 1)) { try await fail(options, 2) }
        await #expect(throws: Broken(number: 3)) { try await fail(ReadOptions(), 3) }
        #expect(cache.counters[.computation] == 2)
        // A caller that cannot throw this type of error computes.
        #expect(await value("one", options) == "one")
        fixture.clock.advance(by: 10)
        await #expect(throws: Broken(number: 4)) { try await fail(options, 4) }
        fixture.clock.advance(by: 10)
        await #expect(throws: Broken(number: 5)) { try await fail(options, 5) }
    }

    @Test func `waiters that remember failures throw the leader's error`() async throws {
        let options = ReadOptions(failureMemory: .seconds(10))
        let gate = Gate()
        let tasks = (0..<20).map { index in
            Task { [cache] in
                try await cache.value(forKey: "key", reading: options) { () async throws(Broken) in
                    await gate.pass()
                    throw Broken(number: 7)
                }
            }
        }
        try await eventually("one computes") { gate.count == 1 && cache.flights.inProgress.waiting == 19 }
        gate.open()
        for task in tasks { await #expect(throws: Broken(number: 7)) { try await task.value } }
        #expect(cache.counters[.computation] == 1)
    }

    @Test func `a cancellation is not remembered`() async throws {
        let options = ReadOptions(failureMemory: .seconds(10))
        let task = Task { [cache] in
            try await cache.value(forKey: "key", reading: options) {
                try await Task.sleep(for: .seconds(3600))
                return Data()
            }
        }
        try await eventually("it computes") { cache.counters[.computation] == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let data = try await cache.value(forKey: "key", reading: options) { () async throws in
            Data("one".utf8)
        }
        #expect(data.text == "one")
    }
}
