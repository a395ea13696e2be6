// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Platform

/// Exclusive waiters beside sharers of other processes, which are simulated by other descriptors.
@Suite(.takesTurns) struct FileLockCourtesyTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Counts the shared holds of four other descriptors while an exclusive waiter tries `rounds` times to lock, for up
    /// to half a second each.
    private func staysPassed(rounds: Int, asking: Bool) throws -> Int {
        let block = WordBlock(count: 8)
        let word = MappedWord(0, of: block.words)
        let path = directory.path + "/lock"
        func makeLock() throws -> FileLock {
            let file = try FileDescriptor(opening: path, [.readWrite, .create])
            return FileLock(owning: file) { asking ? word : nil }
        }
        let locks = try (0..<4).map { _ in try makeLock() }
        let isOver = Atomic<Bool>.Box(false)
        let stays = Atomic<Int>.Box(0)
        let sharers = DispatchGroup()
        for lock in locks {
            sharers.enter()
            Thread.detachNewThread {
                while !isOver.value.load(ordering: .relaxed) {
                    guard (try? lock.lock(.shared, patience: .seconds(10))) != nil else { continue }
                    usleep(1000)
                    stays.value.add(1, ordering: .relaxed)
                    lock.unlock(.shared)
                }
                sharers.leave()
            }
        }
        let waiter = try makeLock()
        usleep(20_000)
        let before = stays.value.load(ordering: .relaxed)
        for _ in 0..<rounds {
            guard (try? waiter.lock(.exclusive, patience: .milliseconds(500))) != nil else { continue }
            waiter.unlock(.exclusive)
        }
        let passed = stays.value.load(ordering: .relaxed) - before
        isOver.value.store(true, ordering: .relaxed)
        sharers.wait()
        withExtendedLifetime(block) {}
        return passed
    }

    @Test func `an exclusive waiter that asks to be let in is not kept out by sharers of other processes`()
        throws
    {
        var figures: [(asking: Int, silent: Int)] = []
        // While the waiter is not scheduled, sharers continue whether it asks or not.
        while figures.count < 10, figures.last.map({ $0.asking * 4 >= $0.silent }) ?? true {
            let asking = try staysPassed(rounds: 10, asking: true)
            figures.append((asking, try staysPassed(rounds: 10, asking: false)))
        }
        #expect(figures.last.map { $0.asking * 4 < $0.silent } ?? false, "stays of sharers: \(figures)")
    }

    @Test func `a request time in the past or too far ahead does not block sharers`() throws {
        let block = WordBlock(count: 8)
        let word = MappedWord(0, of: block.words)
        let file = try FileDescriptor(opening: directory.path + "/lock", [.readWrite, .create])
        let lock = FileLock(owning: file) { word }
        let now = Timestamp.monotonicMilliseconds
        for value in [0, 1, now - 1, now + 3_600_000, UInt64.max] {
            word.value = value
            try lock.lock(.shared, patience: .zero)
            lock.unlock(.shared)
        }
        withExtendedLifetime(block) {}
    }

    @Test func `sharers wait for a dead exclusive waiter no longer than its request time`() throws {
        let block = WordBlock(count: 8)
        let word = MappedWord(0, of: block.words)
        let file = try FileDescriptor(opening: directory.path + "/lock", [.readWrite, .create])
        let lock = FileLock(owning: file) { word }
        let until = Timestamp.monotonicMilliseconds + 40
        word.value = until
        try lock.lock(.shared, patience: .seconds(10))
        #expect(Timestamp.monotonicMilliseconds >= until)
        #expect(word.value == until)
        lock.unlock(.shared)
        withExtendedLifetime(block) {}
    }
}

extension Atomic where Value: Sendable {
    /// An atomic value that closures can share.
    fileprivate final class Box: Sendable {
        let value: Atomic<Value>

        init(_ value: consuming Value) {
            self.value = Atomic(value)
        }
    }
}
