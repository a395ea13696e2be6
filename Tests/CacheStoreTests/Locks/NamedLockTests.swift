// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) final class NamedLockTests {
    let fixture: StoreFixture
    let name = Digest(ofKey: "name")

    init() throws {
        fixture = try StoreFixture()
    }

    var files: [String] { fixture.directory.files(below: "cache/locks").filter { $0.hasPrefix("lock-") } }

    func lock(permits: Int = 1) -> NamedLock {
        NamedLock(name, permits: permits, in: fixture.store.directory)
    }

    @Test func `as many holders as permits hold the lock, and no more`() throws {
        let held = try (0..<3).map { _ in try #require(try lock(permits: 3).attempt()) }
        #expect(files == (0..<3).map { "lock-\(name)-\($0)" })
        let waiting = lock(permits: 3)
        #expect(try waiting.attempt() == nil)
        #expect(waiting.holder?.processIdentifier == getpid())
        held[1].release()
        let next = try #require(try waiting.attempt())
        #expect(try lock(permits: 3).attempt() == nil)
        for permit in [held[0], held[2], next] { permit.release() }
        #expect(files.isEmpty)
    }

    @Test func `a caller with fewer permits waits for one of the first`() throws {
        let held = try (0..<2).map { _ in try #require(try lock(permits: 3).attempt()) }
        #expect(try lock(permits: 2).attempt() == nil)
        let third = try #require(try lock(permits: 3).attempt())
        for permit in held + [third] { permit.release() }
    }

    @Test func `a permit holder has closed the files of the other permits`() throws {
        let first = try #require(try lock(permits: 2).attempt())
        let second = try #require(try lock(permits: 2).attempt())
        #expect(openFiles == 2)
        first.release()
        second.abandon()
        #expect(openFiles == 0)
    }

    private var openFiles: Int {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.count {
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
            return path?.hasPrefix(fixture.path + "/locks/lock-") ?? false
        }
    }

    @Test func `a newcomer that may wait gives way once to those that already wait`() throws {
        let (holder, waiting, newcomer) = (lock(), lock(), lock())
        let held = try #require(try holder.attempt())
        #expect(try waiting.attempt(givesWay: true, waits: true).permit == nil)
        held.release()
        #expect(files.count == 1, "it says that somebody waits")
        let first = try newcomer.attempt(givesWay: true, waits: true)
        #expect(first.permit == nil && first.isWanted)
        let next = try #require(try waiting.attempt())
        #expect(try newcomer.attempt() == nil)
        next.release()
        // A waiter that has given up leaves only that mark.
        let last = try #require(try newcomer.attempt())
        last.release()
        #expect(files.isEmpty)
        #expect(try lock().attempt(givesWay: true, waits: true).permit != nil)
    }

    @Test func `the holder is reported only if it is a process visible to this one`() throws {
        let held = try #require(try lock().attempt())
        let waiting = lock()
        #expect(try waiting.attempt() == nil)
        #expect(waiting.holder?.processIdentifier == getpid())
        // As a process in another PID namespace would write it.
        let line = ComputingProcess(1, since: .now).line
        try Data(line).write(to: URL(fileURLWithPath: "\(fixture.path)/locks/\(files[0])"), options: [])
        #expect(waiting.holder == nil)
        held.release()
    }

    @Test func `the shared lock of a collection is not treated as a holder`()
        throws
    {
        try #require(try lock().attempt()).abandon()
        let path = "\(fixture.path)/locks/\(files[0])"
        let looking = try FileDescriptor(opening: path, .readOnly)
        #expect(try looking.tryLock(.shared))
        #expect(try lock().attempt() == nil)
        let calls = Locked<Int>.Box(0)
        let kept = Locked<FileDescriptor?>.Box(looking)
        let permit = try SystemCall.withFaults { call in
            // The second call checks whether a collection holds the lock shared.
            guard call == .lock else { return nil }
            let count = calls.value.withLock { count in
                count += 1
                return count
            }
            if count == 2 { kept.value.withLock { $0 = nil } }
            return nil
        } _: {
            try lock().lastAttempt()
        }
        #expect(permit != nil)
        #expect(try lock().lastAttempt() == nil, "now it is held")
        permit?.abandon()
        let other = try FileDescriptor(opening: path, .readOnly)
        #expect(try other.tryLock(.shared))
        try fixture.sweep()
        #expect(files.isEmpty)
    }

    @Test func `an abandoned permit is free at once, and the next collection deletes its file`() throws {
        try #require(try lock().attempt()).abandon()
        #expect(files == ["lock-\(name)-0"])
        let next = try #require(try lock().attempt())
        try fixture.sweep()
        #expect(files.count == 1, "somebody holds it")
        #expect(try lock().attempt() == nil)
        next.abandon()
        #expect(try fixture.sweep().removed[.staleTemporary]?.count == 1)
        #expect(files.isEmpty)
    }

    @Test(
        arguments: [
            ("lock-\(Digest(ofKey: "k"))-0", true), ("lock-\(Digest(ofKey: "k"))-255", true),
            ("flight-\(Digest(ofKey: "k"))", true), ("lock-\(Digest(ofKey: "k"))-256", false),
            ("lock-\(Digest(ofKey: "k"))-01", false), ("lock-\(Digest(ofKey: "k"))--1", false),
            ("lock-\(Digest(ofKey: "k"))-+1", false), ("lock-\(Digest(ofKey: "k"))-", false),
            ("lock-\(Digest(ofKey: "k"))", false), ("lock-\(Digest(ofKey: "k"))-0-0", false),
            ("lock-notes-0", false), ("flight-notes", false), ("object-00", false), ("janitor", false),
            ("lock-\(Digest(ofKey: "k"))-" + String(repeating: "0", count: 180) + "1", false),
        ] as [(String, Bool)]
    )
    func `a collection deletes only files with the name of a lock`(name: String, isOurs: Bool) throws {
        makeFile("\(fixture.path)/locks/\(name)")
        try fixture.sweep()
        #expect(FileManager.default.fileExists(atPath: "\(fixture.path)/locks/\(name)") != isOurs)
    }

    @Test func `no more threads than permits hold the lock at a time`() throws {
        let (inside, most, turns) = (Locked<Int>.Box(0), Locked<Int>.Box(0), Locked<Int>.Box(0))
        let (store, name) = (fixture.store, name)
        onThreads(8) { _ in
            var won = 0
            while won < 50 {
                let lock = NamedLock(name, permits: 3, in: store.directory)
                guard let permit = try? lock.attempt() else { continue }
                let count = inside.value.withLock {
                    $0 += 1
                    return $0
                }
                most.value.withLock { $0 = max($0, count) }
                // Long enough for other threads to enter, if they can.
                sleepThread(for: .microseconds(100))
                inside.value.withLock { $0 -= 1 }
                if won % 2 == 0 { permit.release() } else { permit.abandon() }
                won += 1
            }
            turns.value.withLock { $0 += won }
        }
        #expect(most.value.withLock { $0 } <= 3)
        #expect(turns.value.withLock { $0 } == 400)
    }
}
