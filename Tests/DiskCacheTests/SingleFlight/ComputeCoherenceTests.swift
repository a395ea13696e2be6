// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// A point at which a leader stops until a test releases it: it has stored its value, or found another's, but has not
/// handed it over.
private final class Stop: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let reached = Locked(0)

    func pass() {
        reached.withLock { $0 += 1 }
        semaphore.wait()
    }

    func open() { semaphore.signal() }

    var isReached: Bool { reached.withLock { $0 } > 0 }
}

/// Runs `body` on a thread of its own, which it may block.
private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
    }
}

/// A cache that stops once a value is stored or found.
private struct StoppingSource: FlightSource {
    enum Place { case stored, found }

    let cache: SharedCache
    let place: Place
    let stop = Stop()

    var codec: BytesCodec { cache.codec }

    func get(forKey key: String, reading: ReadOptions) throws(CacheError) -> CacheHit<Data>? {
        let hit = try cache.get(forKey: key, reading: reading)
        if place == .found, hit != nil { stop.pass() }
        return hit
    }

    func get(forKey key: String, reading: ReadOptions) async throws(CacheError) -> CacheHit<Data>? {
        try await cache.get(forKey: key, reading: reading)
    }

    func keep(
        _ value: Data,
        forKey key: String,
        _ options: PutOptions,
        _ room: SpaceWait
    ) throws(CacheError) -> MemoryValue<Data> {
        let held = try cache.keep(value, forKey: key, options, room)
        if place == .stored { stop.pass() }
        return held
    }
}

/// A call never returns a value that was already gone when it began.
@Suite(.takesTurns) struct ComputeCoherenceTests {
    enum Form: CaseIterable { case synchronous, asynchronous }

    private let fixture: ComputeFixture
    private var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try ComputeFixture()
    }

    private func source(_ place: StoppingSource.Place) -> StoppingSource {
        StoppingSource(cache: cache, place: place)
    }

    private func text<Source: FlightSource>(
        _ form: Form,
        from source: Source,
        expires: Expiration? = nil,
        _ options: ReadOptions = ReadOptions(),
        orCompute text: String
    ) -> Task<String, Never> where Source.Value == Data {
        Task { [fixture] in
            let request = FlightRequest<Source, Never>(
                source,
                "key",
                PutOptions(expires: expires),
                options
            )
            switch form {
            case .synchronous:
                return await onThread { request.value(fixture.computeBlocking(text)).text }
            case .asynchronous: return await request.value(fixture.compute(text)).text
            }
        }
    }

    /// Requests the key while its value, already removed, is still being handed over, and expects a new one.
    private func expectAnew(while source: StoppingSource, _ form: Form) async throws {
        try await eventually("the leader has it") { source.stop.isReached }
        #expect(try await cache.remove(forKey: "key"))
        let late = text(form, from: cache, orCompute: "new")
        try await eventually("who comes late waits") { cache.flights.inProgress.waiting == 1 }
        source.stop.open()
        #expect(await late.value == "new", "the old value was removed before the call")
    }

    @Test(arguments: Form.allCases)
    func `later callers do not get a removed value that the leader stored`(
        form: Form
    ) async throws {
        let source = source(.stored)
        let early = text(form, from: source, orCompute: "old")
        try await expectAnew(while: source, form)
        #expect(await early.value == "old")
        fixture.expectNothingLeft()
    }

    @Test(arguments: Form.allCases)
    func `later callers do not get a removed value that another process stored`(form: Form) async throws {
        let other = try fixture.other()
        let gate = Gate()
        async let first = other.value(forKey: "key", orCompute: fixture.compute("old", gate))
        try await eventually("the other computes") { gate.count == 1 }
        let source = source(.found)
        let early = text(form, from: source, orCompute: "another")
        try await eventually("the leader waits") { cache.counters[.wait] == 1 }
        gate.open()
        #expect(await first.text == "old")
        try await expectAnew(while: source, form)
        #expect(await early.value == "old")
        fixture.expectNothingLeft(other)
    }

    @Test(arguments: Form.allCases)
    func `later callers do not get a removed value that was computed alongside`(form: Form) async throws {
        let gate = Gate()
        async let first = cache.value(forKey: "key", orCompute: fixture.compute("first", gate))
        try await eventually("the first computes") { gate.count == 1 }
        let source = source(.stored)
        let early = text(form, from: source, ReadOptions(waitLimit: .zero), orCompute: "old")
        try await eventually("it has computed beside") { source.stop.isReached }
        #expect(try await cache.remove(forKey: "key"))
        let patient = ReadOptions(waitLimit: .milliseconds(500))
        let late = text(form, from: cache, patient, orCompute: "new")
        // It waits for the first, then for the one alongside, for up to half a second each.
        try await eventually("the late one waits for that one") { cache.counters[.wait] == 3 }
        source.stop.open()
        #expect(await late.value == "new")
        #expect(await early.value == "old")
        gate.open()
        #expect(await first.text == "first")
        fixture.expectNothingLeft()
    }

    @Test(arguments: Form.allCases)
    func `later callers do not get a removed value that a refresh stored`(form: Form) async throws {
        let options = ReadOptions(staleWhileRevalidate: .seconds(100))
        let source = source(.stored)
        _ = await cache.value(
            forKey: "key",
            options: PutOptions(expires: .seconds(10)),
            reading: options,
            orCompute: fixture.compute("stale")
        )
        fixture.clock.advance(by: 10)
        #expect(
            await text(form, from: source, expires: .seconds(10), options, orCompute: "old").value == "stale"
        )
        try await expectAnew(while: source, form)
        try await eventually("nothing is under way") { cache.flights.inProgress.flights == 0 }
        fixture.expectNothingLeft()
    }

    @Test(arguments: Form.allCases)
    func `later callers compute again if the value has expired meanwhile`(form: Form) async throws {
        let source = source(.stored)
        let early = text(form, from: source, expires: .seconds(10), orCompute: "old")
        try await eventually("the leader has stored it") { source.stop.isReached }
        fixture.clock.advance(by: 10)
        let late = text(form, from: cache, orCompute: "new")
        try await eventually("who comes late waits") { cache.flights.inProgress.waiting == 1 }
        source.stop.open()
        #expect(await late.value == "new")
        #expect(await early.value == "old")
        fixture.expectNothingLeft()
    }

    @Test func `callers before a removal share one computation, later callers the next`() async throws {
        let gate = Gate()
        let source = source(.stored)
        let leader = Task { [fixture] in
            let request = FlightRequest<StoppingSource, Never>(
                source,
                "key",
                PutOptions(),
                ReadOptions()
            )
            return await request.value(fixture.compute("old", gate)).text
        }
        try await eventually("the leader computes") { gate.count == 1 }
        let early = (0..<10).map { _ in text(.asynchronous, from: cache, orCompute: "another") }
        try await eventually("all wait") { cache.flights.inProgress.waiting == 10 }
        gate.open()
        try await eventually("it is stored") { source.stop.isReached }
        #expect(try await cache.remove(forKey: "key"))
        let late = (0..<10).map { _ in text(.asynchronous, from: cache, orCompute: "new") }
        try await eventually("all wait") { cache.flights.inProgress.waiting == 20 }
        source.stop.open()
        #expect(await leader.value == "old")
        for task in early { #expect(await task.value == "old") }
        for task in late { #expect(await task.value == "new") }
        #expect(fixture.count == 2)
        fixture.expectNothingLeft()
    }
}
