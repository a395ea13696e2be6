// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) final class FlightLockTests {
    let fixture: StoreFixture
    let key = Digest(ofKey: "key")

    init() throws {
        fixture = try StoreFixture()
    }

    var file: String { fixture.path + "/locks/flight-\(key)" }
    var exists: Bool { FileManager.default.fileExists(atPath: file) }

    func acquire(_ key: Digest) throws -> FlightLock {
        let lock = FlightLock(of: key, in: fixture.store.directory)
        guard try lock.attempt() == .acquired else { throw HeldByAnother() }
        return lock
    }

    struct HeldByAnother: Error {}

    /// Returns the results of `count` attempts.
    func attempts(_ lock: FlightLock, _ count: Int = 1) throws -> [FlightLock.Attempt] {
        try (0..<count).map { _ in try lock.attempt() }
    }

    @Test func `one process holds the lock, others see its holder, and the release deletes the file`() throws
    {
        let before = Timestamp.now.wholeMilliseconds
        let lock = try acquire(key)
        let waiting = FlightLock(of: key, in: fixture.store.directory)
        #expect(try attempts(waiting) == [.held], "two hold it")
        let holder = try #require(waiting.holder)
        #expect(holder.processIdentifier == getpid())
        #expect(holder.moment >= before && holder.moment <= .now)
        // Other keys are not affected.
        try acquire(Digest(ofKey: "other")).release()
        lock.release()
        #expect(!exists)
        try acquire(key).release()
    }

    @Test func `the lock file names its holder as text`() throws {
        let lock = try acquire(key)
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(text.wholeMatch(of: /pid [0-9]+ since [0-9]{10}\.[0-9]{3} *\n/) != nil, "\(text)")
        lock.release()
    }

    @Test func `a dead holder leaves an unlocked file`() throws {
        func die() throws { _ = try acquire(key) }
        try die()
        #expect(exists, "it goes as in a process that was killed")
        let lock = try acquire(key)
        lock.release()
        #expect(!exists)
    }

    @Test func `a waiter first sees that the holder has ended and then acquires the next lock`() throws {
        let lock = try acquire(key)
        let waiting = FlightLock(of: key, in: fixture.store.directory)
        let meanwhile = try attempts(waiting, 3)
        let holder = waiting.holder
        lock.release()
        let after = try attempts(waiting, 2)
        #expect(meanwhile == [.held, .held, .held])
        #expect(holder?.processIdentifier == getpid())
        #expect(after == [.ended(isUnstored: false), .acquired])
    }

    @Test func `a waiter that gives up closes the lock file`() throws {
        let lock = try acquire(key)
        let waiting = FlightLock(of: key, in: fixture.store.directory)
        #expect(try attempts(waiting) == [.held])
        #expect(waiting.holder != nil)
        waiting.release()
        #expect(waiting.holder == nil && exists)
        lock.release()
    }

    @Test func `a waiter sees the end although a forked child has the file open`() throws {
        let lock = try acquire(key)
        // As fork(2) would leave it in a child: a second descriptor of the same open file.
        let inherited = (0..<1024).first { number in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")) == file
        }
        let copy = dup(Int32(try #require(inherited)))
        defer { close(copy) }
        let waiting = FlightLock(of: key, in: fixture.store.directory)
        let meanwhile = try attempts(waiting)
        lock.release()
        let after = try attempts(waiting, 2)
        #expect(meanwhile + after == [.held, .ended(isUnstored: false), .acquired])
    }

    @Test func `a waiter acquires the lock of a dead holder at once`() throws {
        var lock: FlightLock? = try acquire(key)
        let waiting = FlightLock(of: key, in: fixture.store.directory)
        let meanwhile = try attempts(waiting)
        if lock != nil { lock = nil }
        let after = try attempts(waiting)
        #expect(meanwhile + after == [.held, .acquired])
    }

    @Test func `a waiter sees that nothing was stored, even if another process holds the lock`() throws {
        let lock = try acquire(key)
        let waiting = FlightLock(of: key, in: fixture.store.directory)
        let first = try attempts(waiting)
        lock.release(isStored: false)
        let next = try acquire(key)
        let second = try attempts(waiting, 2)
        next.release()
        let third = try attempts(waiting)
        #expect(first + second == [.held, .ended(isUnstored: true), .held])
        #expect(third == [.ended(isUnstored: false)], "the mark was on that flight only")
    }

    @Test func `the unstored mark of a dead holder does not apply to the next holder`() throws {
        func die() throws {
            _ = try acquire(key)
            #expect(chmod(file, 0o700) == 0)
        }
        try die()
        let lock = try acquire(key)
        let waiting = FlightLock(of: key, in: fixture.store.directory)
        let meanwhile = try attempts(waiting)
        lock.release()
        let after = try attempts(waiting)
        #expect(meanwhile + after == [.held, .ended(isUnstored: false)])
    }

    @Test func `one thread at a time holds the lock although each deletes the file`() throws {
        let inside = Locked<Int>.Box(0)
        let overlaps = Locked<Int>.Box(0)
        let turns = Locked<Int>.Box(0)
        let store = fixture.store
        let key = key
        onThreads(8) { _ in
            var won = 0
            while won < 50 {
                let lock = FlightLock(of: key, in: store.directory)
                guard (try? lock.attempt()) == .acquired else { continue }
                let count = inside.value.withLock {
                    $0 += 1
                    return $0
                }
                // Long enough for other threads to enter, if they can.
                sleepThread(for: .microseconds(100))
                if count != 1 { overlaps.value.withLock { $0 += 1 } }
                inside.value.withLock { $0 -= 1 }
                lock.release()
                won += 1
            }
            turns.value.withLock { $0 += won }
        }
        #expect(overlaps.value.withLock { $0 } == 0)
        #expect(turns.value.withLock { $0 } == 400)
        #expect(!exists)
    }

    @Test func `a directory without locks is a typed error`() throws {
        try FileManager.default.removeItem(atPath: fixture.path + "/locks")
        let error = #expect(throws: CacheError.self) { try acquire(key).release() }
        #expect(error?.cause == .noEntry)
    }

    @Test(
        arguments: [
            "", "pid", "pid 1 since 2", "pid x since 1.000", "pid 1 since 1.9999", "pid 1 since -1.000",
            "pid 1 since 99999999999999999.000", "gid 1 since 1.000", "pid 99999999999 since 1.000",
        ]
    )
    func `an invalid holder line is rejected`(_ text: String) {
        #expect(ComputingProcess(line: Array(text.utf8)) == nil)
    }

    @Test func `a holder line can be read back`() throws {
        for process in [1, 4_194_304, Int32.max] {
            let holder = ComputingProcess(
                process,
                since: Timestamp(nanoseconds: 1_700_000_000_007_000_000)
            )
            #expect(holder.line.count == ComputingProcess.lineLength)
            #expect(ComputingProcess(line: holder.line) == holder)
        }
    }
}
