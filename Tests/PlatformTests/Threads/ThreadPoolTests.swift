// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct ThreadPoolTests {
    /// Counts work and blocks it until the gate is opened.
    private final class Gate: Sendable {
        private let state = Monitored((isOpen: false, inside: 0, done: [Int]()))

        func pass(_ number: Int) {
            state.withLock { $0.inside += 1 }
            state.wakeAll()
            _ = state.wait { $0.isOpen ? true : nil }
            state.withLock {
                $0.inside -= 1
                $0.done.append(number)
            }
            state.wakeAll()
        }

        func open() {
            state.withLock { $0.isOpen = true }
            state.wakeAll()
        }

        func waitUntil(inside count: Int) { _ = state.wait { $0.inside >= count ? true : nil } }
        func waitUntil(done count: Int) { _ = state.wait { $0.done.count >= count ? true : nil } }
        var done: [Int] { state.withLock { $0.done } }
        var inside: Int { state.withLock { $0.inside } }
    }

    @Test func `work runs on up to the limit of threads, and the rest waits in order`() {
        let pool = ThreadPool("test", limit: 3)
        let gate = Gate()
        for number in 0..<10 { pool.run { gate.pass(number) } }
        gate.waitUntil(inside: 3)
        #expect(pool.load == (3, 0, 7))
        gate.open()
        gate.waitUntil(done: 10)
        #expect(Set(gate.done) == Set(0..<10))
        let alone = ThreadPool("test", limit: 1)
        let order = Gate()
        order.open()
        for number in 0..<1000 { alone.run { order.pass(number) } }
        order.waitUntil(done: 1000)
        #expect(order.done == Array(0..<1000))
        #expect(alone.load.threads == 1)
    }

    @Test func `work that must not run on the calling thread is refused if there is no other one`() {
        let pool = ThreadPool("test", limit: 2, idleTime: hangLimit)
        let gate = Gate()
        let noThreads: SystemCall.Injector = { $0 == .makeThread ? .error(.wouldBlock) : nil }
        SystemCall.withFaults(noThreads) {
            #expect(!pool.runOnThread { gate.pass(0) })
        }
        #expect(pool.load == (0, 0, 0))
        #expect(pool.runOnThread { gate.pass(1) })
        gate.waitUntil(inside: 1)
        // The work waits for the existing thread.
        SystemCall.withFaults(noThreads) {
            #expect(pool.runOnThread { gate.pass(2) })
        }
        gate.open()
        gate.waitUntil(done: 2)
        #expect(gate.done == [1, 2])
    }

    @Test func `an idle thread takes the next work`() {
        // However long this test is delayed, the idle thread still exists.
        let pool = ThreadPool("test", limit: 100, idleTime: hangLimit)
        for round in 1...100 {
            let gate = Gate()
            gate.open()
            pool.run { gate.pass(round) }
            gate.waitUntil(done: 1)
            // The thread is about to become idle.
            while pool.load.idle == 0 { usleep(100) }
        }
        #expect(pool.load == (1, 1, 0))
    }

    @Test func `work that may not queue is refused while all threads are busy`() {
        let pool = ThreadPool("test", limit: 2)
        let gate = Gate()
        #expect(pool.runIfFree { gate.pass(0) })
        #expect(pool.runIfFree { gate.pass(1) })
        gate.waitUntil(inside: 2)
        #expect(!pool.runIfFree { gate.pass(2) })
        gate.open()
        gate.waitUntil(done: 2)
        #expect(Set(gate.done) == [0, 1])
    }

    /// Counts its deinitialization.
    private final class Token: Sendable {
        private let gone: Atomic<Int>.Shared
        init(_ gone: Atomic<Int>.Shared) { self.gone = gone }
        deinit { gone.value.add(1, ordering: .relaxed) }
    }

    @Test func `a thread releases its first work once that is done`() {
        let pool = ThreadPool("test", limit: 1, idleTime: hangLimit)
        let gone = Atomic<Int>.Shared()
        func start() -> Bool {
            let token = Token(gone)
            return pool.runIfFree { withExtendedLifetime(token) {} }
        }
        #expect(start())
        let goneBefore = Atomic<Int>.Shared(-1)
        let gate = Gate()
        gate.open()
        // Runs on the same thread, because the limit is 1.
        pool.run {
            goneBefore.value.store(gone.value.load(ordering: .relaxed), ordering: .relaxed)
            gate.pass(0)
        }
        gate.waitUntil(done: 1)
        #expect(goneBefore.value.load(ordering: .relaxed) == 1)
    }

    @Test func `work that many threads submit is not lost`() {
        let pool = ThreadPool("test", limit: 4)
        let done = Atomic<Int>.Shared()
        let gate = Gate()
        onThreads(8) { _ in
            for _ in 0..<2000 {
                pool.run {
                    if done.value.add(1, ordering: .relaxed).newValue == 16_000 { gate.open() }
                }
            }
        }
        gate.pass(0)
        #expect(done.value.load(ordering: .relaxed) == 16_000)
    }

    /// Lets this thread create `count` threads and no more.
    private func withThreads(_ count: Int, _ body: () -> Void) {
        let left = Atomic<Int>.Shared(count)
        SystemCall.withFaults { call in
            guard call == .makeThread else { return nil }
            return left.value.subtract(1, ordering: .relaxed).newValue >= 0 ? nil : .error(.wouldBlock)
        } _: {
            body()
        }
    }

    @Test func `if no second thread can be created, the first one does all the work`() {
        let pool = ThreadPool("test", limit: 8)
        let gate = Gate()
        withThreads(1) {
            for number in 0..<5 { pool.run { gate.pass(number) } }
        }
        gate.waitUntil(inside: 1)
        #expect(pool.load == (1, 0, 4))
        gate.open()
        gate.waitUntil(done: 5)
        #expect(gate.done == [0, 1, 2, 3, 4])
    }

    @Test func `if no thread can be created, the caller does the work`() {
        let pool = ThreadPool("test", limit: 8)
        let gate = Gate()
        gate.open()
        withThreads(0) {
            for number in 0..<3 { pool.run { gate.pass(number) } }
            #expect(gate.done == [0, 1, 2])
            #expect(pool.load == (0, 0, 0))
            #expect(!pool.runIfFree { gate.pass(3) })
        }
        #expect(gate.done.count == 3)
    }
}

extension Atomic where Value == Int {
    /// A number shared by threads.
    fileprivate final class Shared: Sendable {
        let value: Atomic<Int>
        init(_ value: Int = 0) { self.value = Atomic(value) }
    }
}
