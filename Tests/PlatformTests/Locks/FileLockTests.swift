// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct FileLockTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func makeLock() throws -> FileLock {
        let file = try FileDescriptor(opening: directory.path + "/lock", [.readWrite, .create])
        return FileLock(owning: file)
    }

    @Test func `shared locks of one descriptor and of two coexist`() throws {
        let first = try makeLock()
        let second = try makeLock()
        try first.lock(.shared, patience: .zero)
        try first.lock(.shared, patience: .zero)
        try second.lock(.shared, patience: .zero)
        first.unlock(.shared)
        first.unlock(.shared)
        second.unlock(.shared)
    }

    @Test func `an exclusive holder keeps another descriptor out until it unlocks`() throws {
        let first = try makeLock()
        let second = try makeLock()
        try first.lock(.exclusive, patience: .zero)
        #expect(throws: Errno.timedOut) { try second.lock(.exclusive, patience: .zero) }
        #expect(throws: Errno.timedOut) { try second.lock(.shared, patience: .milliseconds(5)) }
        let wait = expectBlocks { try? second.lock(.shared, patience: .seconds(10)) }
        first.unlock(.exclusive)
        wait()
        #expect(throws: Errno.timedOut) { try first.lock(.exclusive, patience: .zero) }
        second.unlock(.shared)
        try first.lock(.exclusive, patience: .zero)
    }

    @Test func `threads of one process exclude each other on the same descriptor`() throws {
        let lock = try makeLock()
        try lock.lock(.shared, patience: .zero)
        #expect(throws: Errno.timedOut) { try lock.lock(.exclusive, patience: .milliseconds(5)) }
        let wait = expectBlocks { try? lock.lock(.exclusive, patience: .seconds(10)) }
        lock.unlock(.shared)
        wait()
        #expect(throws: Errno.timedOut) { try lock.lock(.shared, patience: .milliseconds(5)) }
        lock.unlock(.exclusive)
        try lock.lock(.shared, patience: .zero)
    }

    @Test func `the first sharer's unlock does not release the lock of the second`() throws {
        let first = try makeLock()
        let second = try makeLock()
        try first.lock(.shared, patience: .zero)
        try first.lock(.shared, patience: .zero)
        first.unlock(.shared)
        #expect(throws: Errno.timedOut) { try second.lock(.exclusive, patience: .zero) }
        first.unlock(.shared)
        try second.lock(.exclusive, patience: .zero)
    }

    @Test func `a failed exclusive attempt leaves the lock usable`() throws {
        let first = try makeLock()
        let second = try makeLock()
        try first.lock(.shared, patience: .zero)
        #expect(throws: Errno.timedOut) { try second.lock(.exclusive, patience: .milliseconds(5)) }
        try second.lock(.shared, patience: .zero)
        second.unlock(.shared)
        #expect(throws: Errno.timedOut) { try first.lock(.exclusive, patience: .milliseconds(5)) }
        try first.lock(.shared, patience: .zero)
    }

    @Test func `endlessly overlapping sharers do not keep another process out`() throws {
        let lock = try makeLock()
        let other = try makeLock()
        for _ in 0..<FileLock.sharersPerStay { try lock.lock(.shared, patience: .zero) }
        // The next sharer waits until all of them have unlocked and the kernel's lock was free in between.
        #expect(throws: Errno.timedOut) { try lock.lock(.shared, patience: .milliseconds(5)) }
        for _ in 1..<FileLock.sharersPerStay { lock.unlock(.shared) }
        #expect(throws: Errno.timedOut) { try lock.lock(.shared, patience: .milliseconds(5)) }
        lock.unlock(.shared)
        try other.lock(.exclusive, patience: .zero)
        other.unlock(.exclusive)
        try lock.lock(.shared, patience: .zero)
    }

    @Test func `an exclusive waiter of this process takes precedence over new sharers`() throws {
        let lock = try makeLock()
        try lock.lock(.shared, patience: .zero)
        let wait = expectBlocks { try? lock.lock(.exclusive, patience: .seconds(10)) }
        #expect(throws: Errno.timedOut) { try lock.lock(.shared, patience: .milliseconds(5)) }
        lock.unlock(.shared)
        wait()
    }

    @Test func `sharers proceed while an exclusive waiter of their process waits for another one`() throws {
        let lock = try makeLock()
        let other = try makeLock()
        try other.lock(.shared, patience: .zero)
        let wait = expectBlocks { try? lock.lock(.exclusive, patience: .seconds(3600)) }
        // If sharers were held up until the waiter gave up, these would time out first.
        for _ in 0..<100 {
            try lock.lock(.shared, patience: .seconds(10))
            lock.unlock(.shared)
        }
        other.unlock(.shared)
        wait()
        #expect(throws: Errno.timedOut) { try other.lock(.shared, patience: .zero) }
        lock.unlock(.exclusive)
    }

    @Test func `an exclusive waiter is not kept out by overlapping sharers of its process`() throws {
        let lock = try makeLock()
        let other = try makeLock()
        let isOver = Box(Atomic<Bool>(false))
        let sharers = (0..<4).map { _ in
            expectBlocks {
                while !isOver.flag.load(ordering: .relaxed) {
                    guard (try? lock.lock(.shared, patience: .seconds(10))) != nil else { return }
                    usleep(100)
                    lock.unlock(.shared)
                }
            }
        }
        try lock.lock(.exclusive, patience: .seconds(10))
        lock.unlock(.exclusive)
        // The same while another process holds the lock for part of the time.
        try other.lock(.shared, patience: .seconds(10))
        let wait = expectBlocks { try? lock.lock(.exclusive, patience: .seconds(10)) }
        other.unlock(.shared)
        wait()
        lock.unlock(.exclusive)
        isOver.flag.store(true, ordering: .relaxed)
        for sharer in sharers { sharer() }
    }

    @Test func `a sharer that gives up does not affect longer waiters`() throws {
        let lock = try makeLock()
        let other = try makeLock()
        try other.lock(.exclusive, patience: .zero)
        let giveUp = expectBlocks { try? lock.lock(.shared, patience: .milliseconds(200)) }
        let wait = expectBlocks { try? lock.lock(.shared, patience: .seconds(10)) }
        giveUp()
        other.unlock(.exclusive)
        wait()
        #expect(throws: Errno.timedOut) { try other.lock(.exclusive, patience: .zero) }
        lock.unlock(.shared)
        try other.lock(.exclusive, patience: .zero)
    }

    @Test func `exclusive sections of many threads and descriptors never overlap`() throws {
        let locks = [try makeLock(), try makeLock()]
        let inside = Box(Atomic<Bool>(false))
        let overlaps = CountBox()
        onThreads(4) { index in
            for _ in 0..<200 {
                let lock = locks[index % 2]
                guard (try? lock.lock(.exclusive, patience: .seconds(10))) != nil else { continue }
                if inside.flag.exchange(true, ordering: .acquiringAndReleasing) { overlaps.add() }
                inside.flag.store(false, ordering: .releasing)
                lock.unlock(.exclusive)
            }
        }
        #expect(overlaps.count == 0)
    }
}

private final class Box: Sendable {
    let flag: Atomic<Bool>
    init(_ flag: consuming Atomic<Bool>) { self.flag = flag }
}

private final class CountBox: Sendable {
    private let value = Atomic<Int>(0)
    func add() { value.add(1, ordering: .relaxed) }
    var count: Int { value.load(ordering: .relaxed) }
}
