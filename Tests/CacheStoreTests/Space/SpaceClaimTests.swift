// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// The space that a put claims before it writes.
@Suite(.takesTurns) struct SpaceClaimTests: RoomSuite {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = fixture.store
    }

    @Test func `successful and failed puts release their claims`() throws {
        try limit { $0.limits.maximumEntries = 100 }
        try put("one", in: store)
        try put("one", in: store)
        #expect(store.control.claimedBytes == 0)
        // No shard can be created in a deleted directory, so the put fails after its claim.
        try FileManager.default.removeItem(atPath: fixture.path + "/objects")
        #expect(error { try put("two", in: store) } != nil)
        #expect(store.control.claimedBytes == 0)
    }

    @Test func `a put cannot use room that another put has claimed`() throws {
        try limitToBlocks(10)
        try put("first", in: store)
        let claim = try #require(store.control.claim(8 * 4096, entries: 1))
        let impatient = try store(patience: .zero)
        let lock = try LockFile.acquire(StoreLayout.janitorLock, in: store.directory.locks, patience: .zero)
        #expect(error { try put("second", 2 * 4096, in: impatient) }?.code == .noRoom)
        claim.giveBack()
        try put("second", 2 * 4096, in: impatient)
        #expect(impatient.counters[.roomFailure] == 1)
        lock?.release()
    }

    @Test func `a put waits for claimed values, which can be evicted once stored`() throws {
        try limitToBlocks(8)
        let claim = try #require(store.control.claim(7 * 4096, entries: 1))
        let impatient = try self.store(patience: .zero)
        #expect(error { try put("key", 2 * 4096, in: impatient) }?.code == .noRoom)
        let giver = Thread { [store] in
            while store.space.futileSweep.withLock({ $0 == nil }) { usleep(1000) }
            claim.giveBack()
        }
        giver.start()
        try put("key", 2 * 4096, in: store)
        #expect(store.counters[.roomFailure] == 0)
    }

    @Test func `a claim includes the entry, so concurrent writers keep the entry limit`() throws {
        try limit { $0.limits.maximumEntries = 10 }
        for index in 0..<9 { try put("key \(index)", in: store) }
        let claim = try #require(store.control.claim(10, entries: 1))
        let impatient = try store(patience: .zero)
        let lock = try LockFile.acquire(StoreLayout.janitorLock, in: store.directory.locks, patience: .zero)
        #expect(error { try put("other", in: impatient) }?.code == .noRoom)
        claim.giveBack()
        try put("other", in: impatient)
        #expect(store.control.claimed == ClaimedSpace() && store.control.usage?.entries == 10)
        lock?.release()
    }

    /// A thread that is kept from running for half a second loses its claim, so on a busy machine one attempt may fail.
    @Test func `writers on many threads do not exceed the entry limit`() throws {
        var attempt = try loadEntryLimit()
        for _ in 0..<8 where !attempt.isExact || attempt.most > 20 { attempt = try loadEntryLimit() }
        #expect(attempt.most <= 20 && attempt.isExact)
    }

    /// Returns the largest number of entries that writers on 16 threads saw at a limit of 20, and whether the usage is exact
    /// afterwards.
    private func loadEntryLimit() throws -> (most: Int, isExact: Bool) {
        let fixture = try StoreFixture()
        let store = fixture.store
        try store.configure { (configuration) throws(CacheError) in configuration.limits.maximumEntries = 20 }
        let most = Locked(0)
        var options = StoreOptions()
        options.roomPatience = .seconds(600)
        options.atStep = { [store] step in
            guard step == .entryLocked else { return }
            most.withLock { $0 = max($0, store.control.usage?.entries ?? 0) }
        }
        let writer = try Store(at: fixture.path, options: options)
        onThreads(16) { number in
            for round in 0..<20 {
                let key = "key \(number * 1000 + round * (number % 3))"
                #expect(throws: Never.self) { try self.put(key, 100, in: writer) }
            }
        }
        let isExact = store.control.usage == fixture.usageOnDisk() && fixture.entries.count <= 20
        return (most.withLock { $0 }, isExact)
    }

    @Test func `claims of killed processes expire, and no others`() throws {
        try limit { $0.limits.maximumEntries = 100 }
        _ = store.control.claim(1000)
        try pass(1)
        let alive = try #require(store.control.claim(10))
        #expect(store.control.claimedBytes == 1010)
        try pass(1)
        store.control.claim(1)?.giveBack()
        #expect(store.control.claimedBytes == 10)
        alive.giveBack()
        #expect(store.control.claimedBytes == 0)
        _ = store.control.claim(1000)
        // No other claims were made meanwhile.
        try pass(2)
        #expect(store.control.claimedBytes == 0)
        let last = try #require(store.control.claim(10))
        #expect(store.control.claimedBytes == 10)
        last.giveBack()
    }

    @Test func `the late release of an expired claim does not reduce other claims`() throws {
        try limit { $0.limits.maximumEntries = 100 }
        let late = try #require(store.control.claim(1000))
        try pass(1)
        let next = try #require(store.control.claim(10))
        #expect(late.isStanding)
        try pass(1)
        let last = try #require(store.control.claim(5))
        #expect(!late.isStanding && next.isStanding)
        #expect(store.control.claimedBytes == 15)
        late.giveBack()
        #expect(store.control.claimedBytes == 15)
        last.giveBack()
        last.giveBack()
        #expect(store.control.claimedBytes == 10)
    }

    @Test func `a thread delayed while it reads the clock does not expire other claims`()
        throws
    {
        let words = try #require(store.control.writableWords)
        let claim = try #require(store.control.claim(1000))
        let turn = store.control.presentTurn(words) {
            // The clock was read; before the thread continues, another process starts the next turn, a moment later.
            let now = Timestamp.monotonicMilliseconds
            let next = UInt64(UInt16(truncatingIfNeeded: words.load(.claimTurn)) &+ 1)
            words.store(now << 16 | next, at: .claimTurn)
            return now - 1
        }
        #expect(UInt16(truncatingIfNeeded: words.load(.claimTurn)) == turn)
        #expect(claim.isStanding && store.control.claimedBytes == 1000)
        // The clock is read after the word, which shows that the turn is from an earlier boot.
        words.store(UInt64.max << 16 | UInt64(turn), at: .claimTurn)
        #expect(store.control.claimedBytes == 0)
    }

    @Test(arguments: [PutStep.claimed, .written, .objectLocked])
    func `a writer whose claim has expired still keeps the size limit`(step: PutStep) throws {
        try limitToBlocks(10)
        let slow = Locked<Store?>(nil)
        var options = StoreOptions()
        options.atStep = { reached in
            // Only the first time.
            guard reached == step, let store = slow.withLock({ $0.take() }) else { return }
            #expect(throws: Never.self) {
                #expect(store.control.claimedBytes == 6 * 4096)
                try pass(200)
                // Other puts get the room that it had claimed.
                try put("other", 6 * 4096, in: self.store)
            }
        }
        let store = try Store(at: fixture.path, options: options)
        slow.withLock { $0 = store }
        try put("slow", 6 * 4096, in: store)
        #expect(slow.withLock { $0 } == nil)
        let usage = try #require(store.control.usage)
        #expect(usage.bytes <= 10 * 4096 && store.control.claimedBytes == 0)
        #expect(try store.entries.read(Digest(ofKey: "slow")) != nil)
        #expect(try store.entries.read(Digest(ofKey: "other")) == nil)
    }

    @Test func `room for a file is claimed before the copy, and again if the copy outlasts the claim`()
        throws
    {
        try limitToBlocks(10)
        let path = fixture.directory.path + "/source"
        try Data(repeating: 1, count: 6 * 4096).write(to: URL(fileURLWithPath: path))
        let key = Digest(ofKey: "file")
        let draft = Record(content: Content(digest: key, length: 0, checksum: 0), created: .now)
        let staged = try store.stage(copying: FileDescriptor(opening: path, .readOnly), for: key, draft)
        #expect(store.control.claimedBytes == 6 * 4096)
        try pass(200)
        try put("other", 6 * 4096, in: store)
        let record = Record(content: staged.content, created: .now)
        try store.put(staged, for: key, record)
        #expect(try #require(store.control.usage).bytes <= 10 * 4096 && store.control.claimedBytes == 0)
        #expect(try store.entries.read(Digest(ofKey: "other")) == nil)
    }

    /// Ends the given number of claim turns.
    private func pass(_ turns: UInt64) throws {
        let words = try #require(store.control.writableWords)
        let turn = words.load(.claimTurn)
        words.store(turn - (turns * Control.claimTurn) << 16, at: .claimTurn)
    }
}
