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

    @Test func `the old value is given at once while one refreshes it, one across all processes`()
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
        // More than there are threads; each blocks one until the refresh has ended.
        let tasks = (0..<4 * ProcessInfo.processInfo.activeProcessorCount).map { _ in
            Task { [cache, fixture, stale] in Self.refreshAndWait(cache, fixture, stale) }
        }
        for task in tasks { #expect(await task.value == "two") }
        #expect(fixture.count == 2)
    }

    /// What a synchronous function does in a task that calls it.
    private static func refreshAndWait(
        _ cache: SharedCache,
        _ fixture: ComputeFixture,
        _ stale: ReadOptions
    ) -> String {
        let compute = fixture.computeBlocking("two", for: .milliseconds(100))
        _ = cache.value(forKey: "key", reading: stale, orCompute: compute)
        // A limit, since who waits in vain is to fail and not to hang.
        let limit = ReadOptions(waitLimit: .seconds(20), failsAtWaitLimit: true)
        do {
            return try cache.hit(forKey: "key", reading: limit) { _ in .value(compute()) }.text
        } catch {
            return "\(error)"
        }
    }

    @Test func `after the window the value is computed, and who did not ask gets nothing old`() async throws {
        #expect(await value("one", stale) == "one")
        fixture.clock.advance(by: 10)
        #expect(await value("two", ReadOptions()) == "two", "not asked for")
        fixture.clock.advance(by: 110)
        #expect(await value("three", stale) == "three")
        fixture.clock.advance(by: 60)
        #expect(await value("four", ReadOptions(staleWhileRevalidate: .seconds(50))) == "four")
    }

    @Test func `a value whose accesses prolong it is old from its last access on`() async throws {
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

    @Test func `a failing refresh leaves the old value, and is counted`() async throws {
        #expect(await value("one", stale) == "one")
        fixture.clock.advance(by: 10)
        #expect(try await fail(stale) == "one")
        try await eventually("it has failed") { cache.counters[.computeFailure] == 1 }
        try await eventually("nothing is under way") { cache.flights.inProgress.flights == 0 }
        #expect(await value("two", stale) == "one")
        try await eventually("the next one succeeds") { try cache.get(forKey: "key")?.value.text == "two" }
    }

    @Test func `after a failure the old value will do, for so long`() async throws {
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

    @Test func `the longer of the windows decides how long a value is kept`() async throws {
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

    @Test func `a value that is dear and soon expires is refreshed early`() async throws {
        try await cache.put(
            Data("one".utf8),
            forKey: "key",
            options: PutOptions(expires: .seconds(10), computeTime: .seconds(3600))
        )
        #expect(await value("two", ReadOptions()) == "one")
        #expect(fixture.count == 0)
        // 10 s before its end one that takes an hour is due all but surely: e^(−10/3600000).
        #expect(await value("two", ReadOptions(earlyRefresh: 1000)) == "one")
        try await eventually("it is refreshed") { try cache.get(forKey: "key")?.value.text == "two" }
        #expect(cache.counters[.refresh] == 1)
        #expect(await value("three", ReadOptions(earlyRefresh: 1)) == "two", "that one was cheap")
        #expect(fixture.count == 1)
    }

    @Test func `an error is thrown again for a while, without computing`() async throws {
        let options = ReadOptions(failureMemory: .seconds(10))
        await #expect(throws: Broken(number: 1)) { try await fail(options, 1) }
        await #expect(throws: Broken(number: 1)) { try await fail(options, 2) }
        await #expect(throws: Broken(number: 3)) { try await fail(ReadOptions(), 3) }
        #expect(cache.counters[.computation] == 2)
        // An error of another type is not this caller's to throw.
        #expect(await value("one", options) == "one")
        fixture.clock.advance(by: 10)
        await #expect(throws: Broken(number: 4)) { try await fail(options, 4) }
        fixture.clock.advance(by: 10)
        await #expect(throws: Broken(number: 5)) { try await fail(options, 5) }
    }

    @Test func `those who wait for one that fails fail with it, where they may`() async throws {
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
