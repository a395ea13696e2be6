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
    enum Place { case stored, found }

    private let place: Place
    private let semaphore = DispatchSemaphore(value: 0)
    private let reached = Locked(0)

    init(_ place: Place) { self.place = place }

    /// Stops the thread if the value "old" is at this place.
    func pass(_ value: Data, _ place: Place) {
        guard place == self.place, value == Data("old".utf8) else { return }
        reached.withLock { $0 += 1 }
        semaphore.wait()
    }

    func open() { semaphore.signal() }

    var isReached: Bool { reached.withLock { $0 } > 0 }
}

/// A codec for bytes that may stop the thread which uses it.
///
/// A value is decoded when it is found, and its cost is asked for after it was stored.
private struct StoppingCodec: CacheCodec {
    var stop: Stop?

    func encode(_ value: Data) -> Data { value }

    func decode(_ data: Data) -> Data {
        stop?.pass(data, .found)
        return data
    }

    func cost(of value: Data, encodedSize: Int) -> Int {
        stop?.pass(value, .stored)
        return encodedSize
    }
}

/// Runs `body` on a thread of its own, which it may block.
private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
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

    /// Requests the key's value from a view that takes part in the same flights as all others.
    private func text(
        _ form: Form,
        _ stop: Stop? = nil,
        expires: Expiration? = nil,
        _ reading: ReadOptions = ReadOptions(),
        _ gate: Gate? = nil,
        orCompute text: String
    ) -> Task<String, Never> {
        Task { [fixture] in
            let view = fixture.cache.typed(
                by: StoppingCodec(stop: stop),
                options: PutOptions(expires: expires)
            )
            switch form {
            case .synchronous:
                let compute = fixture.computeBlocking(text)
                return await onThread { view.value(forKey: "key", reading: reading, orCompute: compute).text }
            case .asynchronous:
                let compute = fixture.compute(text, gate)
                return await view.value(forKey: "key", reading: reading, orCompute: compute).text
            }
        }
    }

    /// Requests the key while its value, already removed, is still being handed over, and expects a new one.
    private func expectAnew(while stop: Stop, _ form: Form) async throws {
        try await eventually("the leader has it") { stop.isReached }
        #expect(try await cache.remove(forKey: "key"))
        let late = text(form, orCompute: "new")
        try await eventually("who comes late waits") { cache.flights.inProgress.waiting == 1 }
        stop.open()
        #expect(await late.value == "new", "the old value was removed before the call")
    }

    @Test(arguments: Form.allCases)
    func `later callers do not get a removed value that the leader stored`(
        form: Form
    ) async throws {
        let stop = Stop(.stored)
        let early = text(form, stop, orCompute: "old")
        try await expectAnew(while: stop, form)
        #expect(await early.value == "old")
        fixture.expectNothingLeft()
    }

    @Test(arguments: Form.allCases)
    func `later callers do not get a removed value that another process stored`(form: Form) async throws {
        let other = try fixture.other()
        let gate = Gate()
        async let first = other.value(forKey: "key", orCompute: fixture.compute("old", gate))
        try await eventually("the other computes") { gate.count == 1 }
        let stop = Stop(.found)
        let early = text(form, stop, orCompute: "another")
        try await eventually("the leader waits") { cache.counters[.wait] == 1 }
        gate.open()
        #expect(await first.text == "old")
        try await expectAnew(while: stop, form)
        #expect(await early.value == "old")
        fixture.expectNothingLeft(other)
    }

    @Test(arguments: Form.allCases)
    func `later callers do not get a removed value that was computed alongside`(form: Form) async throws {
        let gate = Gate()
        let first = text(.asynchronous, nil, ReadOptions(), gate, orCompute: "first")
        try await eventually("the first computes") { gate.count == 1 }
        let stop = Stop(.stored)
        let early = text(form, stop, ReadOptions(waitLimit: .zero), orCompute: "old")
        try await eventually("it has computed beside") { stop.isReached }
        #expect(try await cache.remove(forKey: "key"))
        let patient = ReadOptions(waitLimit: .milliseconds(500))
        let late = text(form, nil, patient, orCompute: "new")
        // It waits for the first, then for the one alongside, for up to half a second each.
        try await eventually("the late one waits for that one") { cache.counters[.wait] == 3 }
        stop.open()
        #expect(await late.value == "new")
        #expect(await early.value == "old")
        gate.open()
        #expect(await first.value == "first")
        fixture.expectNothingLeft()
    }

    @Test(arguments: Form.allCases)
    func `later callers do not get a removed value that a refresh stored`(form: Form) async throws {
        let options = ReadOptions(staleWhileRevalidate: .seconds(100))
        let stop = Stop(.stored)
        #expect(await text(form, expires: .seconds(10), options, orCompute: "stale").value == "stale")
        fixture.clock.advance(by: 10)
        #expect(
            await text(form, stop, expires: .seconds(10), options, orCompute: "old").value == "stale"
        )
        try await expectAnew(while: stop, form)
        try await eventually("nothing is under way") { cache.flights.inProgress.flights == 0 }
        fixture.expectNothingLeft()
    }

    @Test(arguments: Form.allCases)
    func `later callers compute again if the value has expired meanwhile`(form: Form) async throws {
        let stop = Stop(.stored)
        let early = text(form, stop, expires: .seconds(10), orCompute: "old")
        try await eventually("the leader has stored it") { stop.isReached }
        fixture.clock.advance(by: 10)
        let late = text(form, orCompute: "new")
        try await eventually("who comes late waits") { cache.flights.inProgress.waiting == 1 }
        stop.open()
        #expect(await late.value == "new")
        #expect(await early.value == "old")
        fixture.expectNothingLeft()
    }

    @Test func `callers before a removal share one computation, later callers the next`() async throws {
        let gate = Gate()
        let stop = Stop(.stored)
        let leader = text(.asynchronous, stop, ReadOptions(), gate, orCompute: "old")
        try await eventually("the leader computes") { gate.count == 1 }
        let early = (0..<10).map { _ in text(.asynchronous, orCompute: "another") }
        try await eventually("all wait") { cache.flights.inProgress.waiting == 10 }
        gate.open()
        try await eventually("it is stored") { stop.isReached }
        #expect(try await cache.remove(forKey: "key"))
        let late = (0..<10).map { _ in text(.asynchronous, orCompute: "new") }
        try await eventually("all wait") { cache.flights.inProgress.waiting == 20 }
        stop.open()
        #expect(await leader.value == "old")
        for task in early { #expect(await task.value == "old") }
        for task in late { #expect(await task.value == "new") }
        #expect(fixture.count == 2)
        fixture.expectNothingLeft()
    }
}
