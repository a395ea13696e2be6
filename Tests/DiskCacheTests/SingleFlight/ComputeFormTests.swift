// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// In asynchronous code every call takes the form that blocks no thread, whatever closure it is given.
@Suite(.takesTurns) struct ComputeFormTests {
    private let fixture: ComputeFixture
    private let words = Words()

    init() throws {
        fixture = try ComputeFixture()
    }

    /// What closures capture, and functions that are given by name.
    private final class Words: Sendable {
        let text = "new"

        @Sendable func plain() -> Data { Data(text.utf8) }
        @Sendable func throwing() throws -> Data { Data(text.utf8) }
        @Sendable func broken() throws(Broken) -> Data { Data(text.utf8) }
        @Sendable func waiting() async -> Data { Data(text.utf8) }
        @Sendable func plainText() -> String { text }
        @Sendable func waitingText() async -> String { text }
    }

    private typealias Call = @Sendable () async throws -> String

    /// Runs calls that all find the key being computed, on one thread.
    ///
    /// One that blocks it keeps the computation that it waits for from ending, and the calls after it from
    /// beginning.
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

    @Test func `for bytes`() async throws {
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

    @Test func `for bytes, with a limit`() async throws {
        let (cache, words, key, limit) = (fixture.cache, words, "key", Duration.seconds(3600))
        try await expectNoneBlocks([
            { try await cache.value(forKey: key, within: limit) { Data() }.text },
            { try await cache.value(forKey: key, within: limit) { [words] in words.plain() }.text },
            { try await cache.value(forKey: key, within: limit) { [words] in try words.throwing() }.text },
            { try await cache.value(forKey: key, within: limit) { [words] in await words.waiting() }.text },
            { try await cache.value(forKey: key, within: limit, orCompute: words.plain).text },
            { try await cache.value(forKey: key, within: limit, orCompute: words.waiting).text },
        ])
    }

    @Test func `for a typed view`() async throws {
        let (view, words, key) = (fixture.cache.typed(String.self), words, "key")
        let limit = Duration.seconds(3600)
        try await expectNoneBlocks([
            { await view.value(forKey: key) { "new" } },
            { await view.value(forKey: key) { [words] in words.text } },
            { await view.value(forKey: key) { [words] in await words.waitingText() } },
            { await view.value(forKey: key, orCompute: words.plainText) },
            { await view.value(forKey: key, orCompute: words.waitingText) },
            { try await view.value(forKey: key, within: limit) { "new" } },
            { try await view.value(forKey: key, within: limit) { [words] in words.text } },
            { try await view.value(forKey: key, within: limit) { [words] in await words.waitingText() } },
            { try await view.value(forKey: key, within: limit, orCompute: words.plainText) },
        ])
    }

    @Test func `an update, too, runs elsewhere, whatever its closure captures`() async throws {
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

/// One thread for all the tasks that prefer it: a task that blocks it holds up all others.
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
