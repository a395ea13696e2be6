// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Waiting for other processes that make room, with and without progress.
@Suite(.takesTurns) struct SpaceWaitTests: RoomSuite {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = fixture.store
    }

    /// Takes the janitor lock, as another process that sweeps does.
    private func janitorLock() throws -> LockFile {
        guard let lock = try store.janitor.take() else { throw Errno.wouldBlock }
        return lock
    }

    @Test func `puts do not wait for a sweep that makes no progress`() throws {
        try limit { $0.limits.maximumEntries = 1 }
        let store = try self.store(patience: .seconds(3600))
        try put("first", in: store)
        let lock = try janitorLock()
        let failure = try #require(error { try put("second", in: store) })
        #expect(failure.code == .noRoom)
        #expect(failure.reason?.contains("process \(CurrentProcess.identifier),") == true)
        var wait = store.janitorWait(SpaceWait())
        #expect(try !wait.pause())
        #expect(error { _ = try Sweep.run(SweepRequest(), on: store, now: .now) }?.code == .busy)
        // The sweep makes progress.
        store.control.noteSweepStep()
        var other = store.janitorWait(SpaceWait())
        #expect(try other.pause())
        lock.release()
        try put("second", in: store)
    }

    @Test func `the limits hold before the first count if the counting process makes no progress`()
        throws
    {
        try limit { $0.limits.maximumEntries = 2 }
        for name in ["a", "b"] { try put(name, in: store) }
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try self.store(patience: .seconds(3600))
        guard let lock = try other.janitor.take() else { throw Errno.wouldBlock }
        for name in ["c", "d"] {
            let failure = try #require(error { try put(name, in: other) })
            #expect(failure.code == .noRoom)
            #expect(failure.reason?.contains("process \(CurrentProcess.identifier),") == true)
        }
        #expect(other.counters[.roomFailure] == 2 && fixture.entries.count == 2)
        lock.release()
        for name in ["c", "d"] { try put(name, in: other) }
        #expect(fixture.entries.count <= 2)
    }

    @Test(arguments: [false, true])
    func `the limits hold while a count of the directory takes long`(isOwn: Bool) throws {
        try limit { $0.limits.maximumEntries = 100 }
        for index in 0..<100 { try put("\(index)", in: store) }
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try self.store(patience: .milliseconds(20))
        guard let lock = try other.janitor.take() else { throw Errno.wouldBlock }
        if isOwn {
            let end = ContinuousClock.now + .seconds(3600)
            other.space.failedCount.withLock { $0 = SpaceState.FailedCount(end: end, isUnreadable: false) }
        }
        var failures = 0
        for index in 100..<120 {
            other.control.noteSweepStep()
            guard let failure = error({ try put("\(index)", in: other) }) else { continue }
            #expect(failure.code == .noRoom && failure.reason?.contains("not been counted yet") == true)
            failures += 1
        }
        #expect(failures == 17)
        #expect(fixture.entries.count == 103)
        lock.release()
    }

    @Test func `no patience causes an overflow, however long`() throws {
        // As many seconds as fit an integer are a twentieth of the longest duration.
        let (longest, shortest) = (Duration(attoseconds: .max), Duration(attoseconds: .min))
        for patience in [longest, shortest, .zero] {
            try limit { $0.limits.maximumEntries = 1 }
            let store = try self.store(patience: patience)
            for name in ["a", "b", "c"] {
                let error = error { try put(name, in: store) }
                // Without patience a put may meet another one in progress.
                #expect(error == nil || error?.code == .noRoom && patience <= .zero)
            }
            var terms = SpaceWait(patience: patience)
            terms.spent = .seconds(1)
            var wait = store.janitorWait(terms)
            wait.begin()
            #expect(wait.deadline >= .now && wait.isOver == (patience < .seconds(2)))
            var request = SweepRequest()
            request.patience = patience
            _ = try Sweep.run(request, on: store, now: .now)
        }
    }

    @Test func `a process that has released the janitor lock is not named as the hindrance`() throws {
        let lock = try janitorLock()
        let name = "process \(CurrentProcess.identifier),"
        #expect(store.janitor.hindrance.contains(name))
        lock.release()
        #expect(!store.janitor.hindrance.contains(name))
    }

    @Test func `a put waits as long as a sweep makes progress`() throws {
        let store = try self.store(patience: .seconds(3600))
        let lock = try janitorLock()
        var wait = store.janitorWait(SpaceWait())
        let begin = ContinuousClock.now
        while ContinuousClock.now - begin < JanitorWait.longestStandstill * 2 {
            store.control.noteSweepStep()
            #expect(try wait.pause())
        }
        lock.release()
    }

    @Test func `a put releases its waiters before it waits for room`() throws {
        try limit { $0.limits.maximumEntries = 1 }
        let store = try self.store(patience: .seconds(3600))
        try put("first", in: store)
        let lock = try janitorLock()
        let calls = Locked(0)
        let bytes = Array("second".utf8)
        let record = Record(content: Content(of: bytes.span), created: .now)
        let room = SpaceWait { calls.withLock { $0 += 1 } }
        #expect(
            error { try store.put(bytes.span, for: Digest(ofKey: "second"), record, room) }?.code == .noRoom
        )
        #expect(calls.withLock { $0 } == 1)
        lock.release()
        try store.put(bytes.span, for: Digest(ofKey: "second"), record, room)
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func `time spent waiting for room is deducted from the wait for stripe locks`() {
        var wait = SpaceWait()
        #expect(wait.stripePatience == Stripes.writerPatience)
        for spent in [1, 100, 400, 800] {
            wait.spent = .milliseconds(spent)
            let stripe = wait.stripePatience
            #expect(stripe >= .milliseconds(100) && wait.spent + stripe < .seconds(1))
        }
    }

    @Test func `after a timeout on a stripe lock, later calls do not each wait the full time`() throws {
        let name = StoreLayout.lockName(.entries, Digest(ofKey: "a").stripe)
        let lock = try LockFile.acquire(name, in: store.directory.locks, patience: .zero)
        #expect(error { _ = try store.remove(Digest(ofKey: "a"), now: .now) }?.code == .busy)
        // Together they wait less than ten times.
        let begin = ContinuousClock.now
        for _ in 0..<10 {
            #expect(error { _ = try store.remove(Digest(ofKey: "a"), now: .now) }?.code == .busy)
        }
        #expect(ContinuousClock.now - begin < Stripes.writerPatience * 10)
        lock?.release()
        #expect(try !store.remove(Digest(ofKey: "a"), now: .now))
    }
}

/// Waiting for room on a full disk.
@Suite(.enabled(if: Mount.isAllowed, "mounting a file system needs root"), .takesTurns)
struct StoreFullDiskTests {
    private let patience: Duration = .seconds(3600)
    private let mount: Mount
    private let store: Store

    init() throws {
        mount = try Mount("tmpfs", options: "size=4m")
        var options = StoreOptions()
        options.roomPatience = patience
        store = try Store(at: mount.path + "/cache", options: options)
    }

    @Test func `on a full disk puts do not wait long for a sweep that makes no progress`() throws {
        guard let lock = try store.janitor.take() else { throw Errno.wouldBlock }
        var (stored, failure) = (0, CacheError?.none)
        let time = ContinuousClock().measure {
            while failure == nil, stored < 1000 {
                let bytes = SeededGenerator.bytes(50_000, seed: UInt64(stored))
                let record = Record(content: Content(of: bytes.span), created: .now)
                do throws(CacheError) {
                    try store.put(bytes.span, for: Digest(ofKey: "key \(stored)"), record)
                    stored += 1
                } catch {
                    failure = error
                }
            }
        }
        #expect(failure?.cause == .noSpace && stored > 5)
        #expect(time < patience / 100)
        lock.release()
    }
}
