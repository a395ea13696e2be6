// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// In asynchronous code every call resolves to the nonblocking form, whatever closure it gets.
@Suite(.takesTurns) struct ComputeFormTests {
    private let fixture: ComputeFixture
    private let words = Words()

    init() throws {
        fixture = try ComputeFixture()
    }

    /// An object that closures capture, with functions that are passed by name.
    private final class Words: Sendable {
        let text = "new"

        @Sendable func plain() -> Data { Data(text.utf8) }
        @Sendable func throwing() throws -> Data { Data(text.utf8) }
        @Sendable func broken() throws(Broken) -> Data { Data(text.utf8) }
        @Sendable func waiting() async -> Data { Data(text.utf8) }
        @Sendable func plainText() -> String { text }
        @Sendable func waitingText() async -> String { text }
        @Sendable func decision(_ computation: Computation<Data>) throws -> Computed<Data> { .value(plain()) }
        @Sendable func waitingDecision(_ computation: Computation<Data>) async throws -> Computed<Data> {
            .value(plain())
        }
        @Sendable func all(_ keys: [String]) -> [String: Data] {
            Dictionary(uniqueKeysWithValues: keys.map { ($0, plain()) })
        }
        @Sendable func waitingAll(_ keys: [String]) async -> [String: Data] { all(keys) }
    }

    private typealias Call = @Sendable () async throws -> String

    /// Runs calls on one thread while the key is being computed.
    ///
    /// A call that blocked the thread would keep the computation that it waits for from ending and later calls from starting.
    private func expectNoneBlocks(_ calls: [Call]) async throws {
        let gate = Gate()
        let cache = fixture.cache
        let key = "key"
        async let first = cache.value(forKey: key, orCompute: fixture.compute("\"old\"", gate))
        async let typed = cache.typed(String.self).value(forKey: key) {
            await gate.pass()
            return "old"
        }
        try await eventually("both forms are computed") { cache.flights.inProgress.flights == 2 }
        try await eventually("one computes") { gate.count == 1 }
        let thread = SingleThread()
        let tasks = calls.map { call in Task(executorPreference: thread) { try await call() } }
        try await eventually("all calls wait, none on the thread") {
            cache.flights.inProgress.waiting == calls.count
        }
        gate.open()
        _ = await (first, typed)
        for task in tasks { #expect(["old", "\"old\""].contains(try await task.value)) }
    }

    @Test func `no call for bytes blocks the thread`() async throws {
        let (cache, words, key) = (fixture.cache, words, "key")
        let stored: @Sendable () -> Data = { Data() }
        try await expectNoneBlocks([
            { await cache.value(forKey: key) { Data() }.text },
            { await cache.value(forKey: key) { [words] in Data(words.text.utf8) }.text },
            { await cache.value(forKey: key) { [weak words] in Data((words?.text ?? "").utf8) }.text },
            { try await cache.value(forKey: key) { [words] in try words.throwing() }.text },
            { try await cache.value(forKey: key) { () throws(Broken) in try words.broken() }.text },
            { try await cache.value(forKey: key) { [words] () throws(Broken) in try words.broken() }.text },
            { await cache.value(forKey: key) { [words] in await words.waiting() }.text },
            { await cache.value(forKey: key, orCompute: words.plain).text },
            { try await cache.value(forKey: key, orCompute: words.throwing).text },
            { try await cache.value(forKey: key, orCompute: words.broken).text },
            { await cache.value(forKey: key, orCompute: words.waiting).text },
            { await cache.value(forKey: key, orCompute: stored).text },
            {
                async let value = cache.value(forKey: key) { [words] in words.plain() }
                return await value.text
            },
        ])
    }

    @Test func `no call whose closure returns a decision blocks the thread`() async throws {
        let (cache, words, key) = (fixture.cache, words, "key")
        try await expectNoneBlocks([
            { try await cache.hit(forKey: key) { _ in .value(Data()) }.text },
            { try await cache.hit(forKey: key) { [words] _ in .value(words.plain()) }.text },
            { try await cache.hit(forKey: key) { [words] _ in .unkept(try words.throwing()) }.text },
            { try await cache.hit(forKey: key) { [words] _ in .value(await words.waiting()) }.text },
            { try await cache.hit(forKey: key, orCompute: words.decision).text },
            { try await cache.hit(forKey: key, orCompute: words.waitingDecision).text },
        ])
    }

    @Test func `no call for many keys blocks the thread`() async throws {
        let (cache, words, keys) = (fixture.cache, words, ["key"])
        try await expectNoneBlocks([
            { try await cache.values(forKeys: keys) { _ in ["key": Data()] }.values.first?.text ?? "" },
            { try await cache.values(forKeys: keys) { [words] in words.all($0) }.values.first?.text ?? "" },
            {
                let found = try await cache.values(forKeys: keys) { [words] in await words.waitingAll($0) }
                return found["key"]?.text ?? ""
            },
            { try await cache.values(forKeys: keys, orCompute: words.all).values.first?.text ?? "" },
            { try await cache.values(forKeys: keys, orCompute: words.waitingAll).values.first?.text ?? "" },
        ])
    }

    @Test func `no call of a typed view blocks the thread`() async throws {
        let (view, words, key) = (fixture.cache.typed(String.self), words, "key")
        try await expectNoneBlocks([
            { await view.value(forKey: key) { "new" } },
            { await view.value(forKey: key) { [words] in words.text } },
            { await view.value(forKey: key) { [words] in await words.waitingText() } },
            { await view.value(forKey: key, orCompute: words.plainText) },
            { await view.value(forKey: key, orCompute: words.waitingText) },
            { try await view.hit(forKey: key) { _ in .value("new") }?.value ?? "" },
            { try await view.hit(forKey: key) { [words] _ in .value(words.text) }?.value ?? "" },
            {
                let hit = try await view.hit(forKey: key) { [words] _ in .value(await words.waitingText()) }
                return hit?.value ?? ""
            },
        ])
    }

    @Test func `an update runs its closure off the caller's executor, whatever it captures`() async throws {
        let cache = fixture.cache
        let here = SingleThread()
        let task = Task(executorPreference: here) { [words] in
            try await cache.update(forKey: "key") { [words] _ in
                #expect(!here.isCurrent)
                return .value(words.plain())
            }
        }
        #expect(try await task.value?.text == "new")
    }
}

/// One thread for all tasks that prefer this executor: a task that blocks it delays all others.
private final class SingleThread: TaskExecutor {
    private let queue = DispatchQueue(label: "single")
    private let mark = DispatchSpecificKey<Bool>()

    init() { queue.setSpecific(key: mark, value: true) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }
}
