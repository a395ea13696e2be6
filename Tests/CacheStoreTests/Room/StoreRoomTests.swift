// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Limits as a put meets them, without a janitor.
@Suite(.takesTurns) struct StoreRoomTests {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = fixture.store
    }

    private func store(patience: Duration) throws -> Store {
        var options = StoreOptions()
        options.roomPatience = patience
        return try Store(at: fixture.path, options: options)
    }

    /// Stores a value of its own of so many bytes.
    private func put(_ key: String, _ count: Int = 4096, in store: Store, at time: Timestamp = .now) throws {
        let bytes = Array("\(key) ".utf8) + [UInt8](repeating: 7, count: max(0, count - key.utf8.count - 1))
        let record = Record(content: Content(of: bytes.span), created: time)
        try store.put(bytes.span, for: Digest(ofKey: key), record)
    }

    private func limit(_ change: (inout DirectoryConfiguration) -> Void) throws {
        try store.configure { (configuration) throws(StoreError) in change(&configuration) }
    }

    /// Room for so many values of a block each beside what the directory takes by itself.
    private func limitToBlocks(_ count: Int64) throws {
        let size = store.overhead + count * store.directory.fileSystem.blockSize
        try limit { $0.limits.maximumSize = size }
    }

    private func error(_ body: () throws -> Void) -> StoreError? {
        do {
            try body()
            return nil
        } catch {
            return error as? StoreError
        }
    }

    @Test func `a value that can never fit is refused before it is written`() throws {
        try limit { $0.maximumValueSize = 1000 }
        try put("fits", 1000, in: store)
        #expect(error { try put("long", 1001, in: store) }?.code == .valueTooLarge)
        try limit { $0.maximumValueSize = nil }
        try limitToBlocks(4)
        #expect(error { try put("huge", 5 * 4096, in: store) }?.code == .valueTooLarge)
        #expect(fixture.directory.files(below: "cache/objects").count == 1)
        #expect(try fixture.get("long") == nil && fixture.get("huge") == nil)
    }

    @Test func `a file as long as a file can be is too long for any limit`() async {
        // It once was the end of the process.
        await #expect(processExitsWith: .success) {
            // In memory a file may be that long.
            let place = try TemporaryDirectory(below: "/dev/shm")
            let store = try StoreFixture.open(place.path + "/cache")
            try store.configure { $0.limits.maximumSize = 100 << 20 }
            makeFile(place.path + "/source")
            try #require(truncate(place.path + "/source", .max) == 0)
            let content = Content(digest: Digest(ofKey: "a"), length: 0, checksum: 0)
            let error = #expect(throws: StoreError.self) {
                _ = try store.stage(
                    copying: FileDescriptor(opening: place.path + "/source", .readOnly),
                    for: Digest(ofKey: "a"),
                    Record(content: content, created: .now)
                )
            }
            #expect(error?.code == .valueTooLarge)
        }
    }

    @Test func `a copy that turns out too long is given up`() throws {
        try limit { $0.maximumValueSize = 300_000 }
        let path = fixture.directory.path + "/source"
        try Data(repeating: 1, count: 300_001).write(to: URL(fileURLWithPath: path))
        let draft = Record(
            content: Content(digest: Digest(ofKey: "a"), length: 0, checksum: 0),
            created: .now
        )
        let refused = error {
            _ = try store.stage(
                copying: FileDescriptor(opening: path, .readOnly),
                for: Digest(ofKey: "a"),
                draft
            )
        }
        #expect(refused?.code == .valueTooLarge)
        let pipe = Foundation.Pipe()
        let writer = Thread {
            try? pipe.fileHandleForWriting.write(contentsOf: Data(repeating: 1, count: 300_001))
            try? pipe.fileHandleForWriting.close()
        }
        writer.start()
        let piped = error {
            let source = try FileDescriptor.duplicate(pipe.fileHandleForReading.fileDescriptor)
            _ = try store.stage(copying: source, for: Digest(ofKey: "a"), draft)
        }
        #expect(piped?.code == .valueTooLarge)
    }

    @Test func `a put that finds no room evicts what was used longest ago`() throws {
        let start = Timestamp.now - .seconds(100)
        try limit { $0.limits.maximumEntries = 10 }
        for index in 0..<10 { try put("key \(index)", in: store, at: start + .seconds(index)) }
        for index in 10..<40 { try put("key \(index)", in: store, at: start + .seconds(index)) }
        let kept = (0..<40).filter { (try? store.entries.read(Digest(ofKey: "key \($0)"))) != nil }
        #expect(kept.count <= 10 && kept.count >= 5)
        #expect(kept == Array((40 - kept.count)..<40))
        #expect(store.counters[.sweptEntries] == 40 - kept.count)
        #expect(store.counters[.evictedYoung] == 40 - kept.count)
        #expect(store.counters[.roomWait] > 0 && store.counters[.roomFailure] == 0)
    }

    @Test func `a limit of size holds for what the directory takes on disk`() throws {
        try limitToBlocks(64)
        let start = Timestamp.now - .seconds(1000)
        for index in 0..<300 { try put("key \(index)", in: store, at: start + .seconds(index)) }
        let usage = try #require(store.usage)
        let blockSize = store.directory.fileSystem.blockSize
        #expect(usage.bytes <= 64 * blockSize && usage.bytes > 32 * blockSize)
        #expect(try store.entries.read(Digest(ofKey: "key 299")) != nil)
        #expect(try store.entries.read(Digest(ofKey: "key 0")) == nil)
    }

    @Test func `nothing is claimed once puts have ended, whichever way`() throws {
        try limit { $0.limits.maximumEntries = 100 }
        try put("one", in: store)
        try put("one", in: store)
        #expect(store.control.claimedBytes == 0)
        // No shard can be made in a directory that is gone: the put fails behind its claim.
        try FileManager.default.removeItem(atPath: fixture.path + "/objects")
        #expect(error { try put("two", in: store) } != nil)
        #expect(store.control.claimedBytes == 0)
    }

    @Test func `a claim keeps others from the room`() throws {
        try limitToBlocks(10)
        try put("first", in: store)
        var room = RoomTerms()
        let claim = try #require(try store.claimRoom(forLength: 8 * 4096, now: .now, &room))
        let impatient = try store(patience: .zero)
        let lock = try LockFile.acquire(StoreLayout.janitorLock, in: store.directory.locks, patience: .zero)
        #expect(error { try put("second", 2 * 4096, in: impatient) }?.code == .noRoom)
        store.room.giveBack(claim)
        try put("second", 2 * 4096, in: impatient)
        #expect(impatient.counters[.roomFailure] == 1)
        lock?.release()
    }

    @Test func `what others are about to store is waited for, as it can be evicted then`() throws {
        try limitToBlocks(8)
        var room = RoomTerms()
        let claim = try #require(try store.claimRoom(forLength: 7 * 4096, now: .now, &room))
        let impatient = try self.store(patience: .zero)
        #expect(error { try put("key", 2 * 4096, in: impatient) }?.code == .noRoom)
        let giver = Thread { [store] in
            while store.room.impasse.withLock({ $0 == nil }) { usleep(1000) }
            store.room.giveBack(claim)
        }
        giver.start()
        try put("key", 2 * 4096, in: store)
        #expect(store.counters[.roomFailure] == 0)
    }

    @Test func `claims of killed processes are forgotten, and no others`() throws {
        try limit { $0.limits.maximumEntries = 100 }
        _ = store.control.claim(1000)
        try pass(1)
        let alive = try #require(store.control.claim(10))
        #expect(store.control.claimedBytes == 1010)
        try pass(1)
        store.room.giveBack(store.control.claim(1))
        #expect(store.control.claimedBytes == 10)
        store.room.giveBack(alive)
        #expect(store.control.claimedBytes == 0)
        _ = store.control.claim(1000)
        // Nobody has claimed anything meanwhile.
        try pass(2)
        #expect(store.control.claimedBytes == 0)
        let last = try #require(store.control.claim(10))
        #expect(store.control.claimedBytes == 10)
        store.room.giveBack(last)
    }

    @Test func `what a sweep spares each time is found once to be beyond it`() throws {
        try limit { $0.limits.maximumSize = 1 << 30 }
        for index in 0..<5 { try put("value \(index)", in: store) }
        for index in 0..<5 { #expect(try store.remove(Digest(ofKey: "value \(index)"), now: .now)) }
        // As if they had been changed after it began, and so as where the clock was put back.
        let objects = fixture.directory.files(below: "cache/objects").map { fixture.path + "/objects/" + $0 }
        var pace = SweepPace()
        pace.slice = .zero
        pace.pause = { _ in
            for object in objects { _ = chmod(object, 0o444) }
            return true
        }
        let excess = Excess(size: 4096)
        let first = try store.room.sweep(for: excess, now: .now, pace: pace)
        #expect(first == .busy && fixture.objects.count == 5)
        let second = try store.room.sweep(for: excess, now: .now, pace: pace)
        #expect(second == .impossible && fixture.objects.count == 5)
        // The clock has caught up.
        #expect(try store.room.sweep(for: excess, now: .now, pace: SweepPace()) == .done)
        #expect(fixture.objects.isEmpty)
    }

    @Test func `what was waited for room is not waited for stripes as well`() {
        var room = RoomTerms()
        #expect(room.stripePatience == Stripes.writerPatience)
        for spent in [1, 100, 400, 800] {
            room.spent = .milliseconds(spent)
            let stripe = room.stripePatience
            #expect(stripe >= .milliseconds(100) && room.spent + stripe < .seconds(1))
        }
    }

    @Test func `what is given back late takes nothing off that others have claimed`() throws {
        try limit { $0.limits.maximumEntries = 100 }
        let late = try #require(store.control.claim(1000))
        try pass(1)
        let next = try #require(store.control.claim(10))
        #expect(store.control.isStanding(late))
        try pass(1)
        let last = try #require(store.control.claim(5))
        #expect(!store.control.isStanding(late) && store.control.isStanding(next))
        #expect(store.control.claimedBytes == 15)
        store.room.giveBack(late)
        #expect(store.control.claimedBytes == 15)
        store.room.giveBack(last)
        store.room.giveBack(last)
        #expect(store.control.claimedBytes == 10)
    }

    @Test(arguments: [PutStep.claimed, .written, .objectLocked])
    func `a writer that others overtook by a minute keeps within the limit all the same`(step: PutStep) throws
    {
        try limitToBlocks(10)
        let slow = Locked<Store?>(nil)
        var options = StoreOptions()
        options.atStep = { reached in
            // Once.
            guard reached == step, let store = slow.withLock({ $0.take() }) else { return }
            #expect(throws: Never.self) {
                #expect(store.control.claimedBytes == 6 * 4096)
                try pass(200)
                // Others are granted what it had claimed.
                try put("other", 6 * 4096, in: self.store)
            }
        }
        let store = try Store(at: fixture.path, options: options)
        slow.withLock { $0 = store }
        try put("slow", 6 * 4096, in: store)
        #expect(slow.withLock { $0 } == nil)
        let usage = try #require(store.usage)
        #expect(usage.bytes <= 10 * 4096 && store.control.claimedBytes == 0)
        #expect(try store.entries.read(Digest(ofKey: "slow")) != nil)
        #expect(try store.entries.read(Digest(ofKey: "other")) == nil)
    }

    @Test func `the room for a file is claimed before it is copied, and again where that took too long`()
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
        #expect(try #require(store.usage).bytes <= 10 * 4096 && store.control.claimedBytes == 0)
        #expect(try store.entries.read(Digest(ofKey: "other")) == nil)
    }

    // MARK: Others that do not get on

    /// Held as by another process that sweeps.
    private func janitorLock() throws -> LockFile {
        guard let lock = try store.parts.janitor.take() else { throw Errno.wouldBlock }
        return lock
    }

    @Test func `nobody waits for a sweep that does not get on, and once that is known not at all`() throws {
        try limit { $0.limits.maximumEntries = 1 }
        let store = try self.store(patience: .seconds(3600))
        try put("first", in: store)
        let lock = try janitorLock()
        let failure = try #require(error { try put("second", in: store) })
        #expect(failure.code == .noRoom)
        #expect(failure.detail?.contains("process \(CurrentProcess.identifier),") == true)
        var wait = store.room.wait(RoomTerms())
        #expect(try !wait.pause())
        #expect(error { _ = try Sweep.run(SweepRequest(), on: store.parts, now: .now) }?.code == .busy)
        // It gets on.
        store.control.noteSweepStep()
        var other = store.room.wait(RoomTerms())
        #expect(try other.pause())
        lock.release()
        try put("second", in: store)
    }

    @Test func `who has left its number and holds no lock any more is not named`() throws {
        let lock = try janitorLock()
        let name = "process \(CurrentProcess.identifier),"
        #expect(store.parts.janitor.hindrance.contains(name))
        lock.release()
        #expect(!store.parts.janitor.hindrance.contains(name))
    }

    @Test func `a sweep that gets on is waited for`() throws {
        let store = try self.store(patience: .seconds(3600))
        let lock = try janitorLock()
        var wait = store.room.wait(RoomTerms())
        let begin = ContinuousClock.now
        while ContinuousClock.now - begin < JanitorWait.longestStandstill * 2 {
            store.control.noteSweepStep()
            #expect(try wait.pause())
        }
        lock.release()
    }

    @Test func `where it takes more than a moment, who waits for the caller is let go`() throws {
        try limit { $0.limits.maximumEntries = 1 }
        let store = try self.store(patience: .seconds(3600))
        try put("first", in: store)
        let lock = try janitorLock()
        let calls = Locked(0)
        let bytes = Array("second".utf8)
        let record = Record(content: Content(of: bytes.span), created: .now)
        let room = RoomTerms { calls.withLock { $0 += 1 } }
        #expect(
            error { try store.put(bytes.span, for: Digest(ofKey: "second"), record, room) }?.code == .noRoom
        )
        #expect(calls.withLock { $0 } == 1)
        lock.release()
        try store.put(bytes.span, for: Digest(ofKey: "second"), record, room)
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func `a stripe that was waited for in vain is not waited for again and again`() throws {
        let name = StoreLayout.lockName(.entry, Digest(ofKey: "a").stripe)
        let lock = try LockFile.acquire(name, in: store.directory.locks, patience: .zero)
        #expect(error { _ = try store.remove(Digest(ofKey: "a"), now: .now) }?.code == .busy)
        // In the time of one wait.
        let begin = ContinuousClock.now
        for _ in 0..<10 {
            #expect(error { _ = try store.remove(Digest(ofKey: "a"), now: .now) }?.code == .busy)
        }
        #expect(ContinuousClock.now - begin < Stripes.writerPatience * 10)
        lock?.release()
        #expect(try !store.remove(Digest(ofKey: "a"), now: .now))
    }

    /// Has so many turns of claims be over.
    private func pass(_ turns: UInt64) throws {
        let words = try #require(store.control.writableWords)
        let turn = words.load(.claimTurn)
        words.store(turn - (turns * Control.claimTurn) << 16, at: .claimTurn)
    }

    @Test func `values that several keys share make room too`() throws {
        try limit { $0.limits.maximumEntries = 2 }
        let bytes = Array("shared".utf8)
        for key in ["a", "b"] {
            let record = Record(content: Content(of: bytes.span), created: .now)
            try store.put(bytes.span, for: Digest(ofKey: key), record)
        }
        let hasty = try self.store(patience: .seconds(2))
        try put("c", in: hasty)
        #expect(hasty.counters[.roomFailure] == 0 && store.control.usage?.entries ?? 3 <= 2)
    }

    @Test func `where the control file was lost limits hold all the same`() throws {
        let start = Timestamp.now - .seconds(1000)
        for index in 0..<20 { try put("key \(index)", in: store, at: start + .seconds(index)) }
        try limitToBlocks(24)
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try self.store(patience: .seconds(60))
        #expect(other.usage?.isCounted == false)
        for index in 20..<60 { try put("key \(index)", in: other, at: start + .seconds(index)) }
        #expect(other.usage?.isCounted == true)
        #expect(fixture.directory.files(below: "cache/objects").count <= 24)
    }

    @Test func `where not all can be read puts go on, and do not look each time`() throws {
        try put("old", in: store)
        try limitToBlocks(24)
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try self.store(patience: .seconds(60))
        other.room.uncountableUntil.withLock { $0 = .now + .seconds(3600) }
        try put("new", in: other)
        #expect(other.usage?.isCounted == false && other.counters[.sweep] == 0)
    }

    @Test func `keys that share a value count as well`() throws {
        try limit { $0.limits.maximumEntries = 10 }
        let bytes = Array("shared".utf8)
        for index in 0..<40 {
            let record = Record(content: Content(of: bytes.span), created: .now)
            try store.put(bytes.span, for: Digest(ofKey: "key \(index)"), record)
            #expect(store.usage?.entries ?? 40 <= 10)
        }
    }

    @Test(arguments: [UInt64.max, 1 << 63, UInt64.max >> 1, UInt64.max >> 1 - 4096])
    func `whatever the control file says, nothing overflows`(word: UInt64) throws {
        try limit {
            $0.limits.maximumSize = 1 << 30
            $0.limits.maximumEntries = 1000
            $0.limits.minimumFree = .bytes(1)
        }
        let words = try #require(store.control.writableWords)
        for place in ControlWord.usedBytes.rawValue...ControlWord.sweepHolder.rawValue {
            switch ControlWord(rawValue: place) {
            case .isUsageCounted, .filterSeal, .pointerSeal: continue
            default: words.store(word, at: place)
            }
        }
        for index in ControlLayout.counters..<ControlLayout.counters + 64 { words.store(word, at: index) }
        let other = try self.store(patience: .zero)
        for index in 0..<4 { _ = error { try put("key \(index)", in: other) } }
        _ = try other.room.overflow()
        try fixture.sweep { $0.limits = store.configuration.limits }
        other.followHorizon()
        #expect(store.control.usage.map { $0.entries <= 4 } ?? false)
    }

    @Test func `values that were replaced go before any that is in use`() throws {
        let start = Timestamp.now - .seconds(1000)
        for index in 0..<30 { try put("key \(index)", in: store, at: start + .seconds(index)) }
        // Leaves a list of who is to go: key 0 first.
        try limitToBlocks(52)
        try fixture.sweep { $0.limits = store.configuration.limits }
        for index in 10..<30 {
            let bytes = Array("other \(index)".utf8)
            let record = Record(content: Content(of: bytes.span), created: start + .seconds(100 + index))
            try store.put(bytes.span, for: Digest(ofKey: "key \(index)"), record)
        }
        for index in 30..<40 { try put("key \(index)", in: store, at: start + .seconds(200 + index)) }
        #expect(store.counters[.sweptOrphan] == 20 && store.counters[.sweptSize] == 0)
        for index in 0..<40 { #expect(try store.entries.read(Digest(ofKey: "key \(index)")) != nil) }
    }

    @Test func `a minimum of free space that nobody can bring about fails puts, and only those`() throws {
        try put("there", in: store)
        let free = try store.directory.root.descriptor.fileSystemSpace().availableBytes
        try limit { $0.limits.minimumFree = .bytes(free * 2) }
        #expect(error { try put("more", in: store) }?.code == .noRoom)
        // It does not look each time.
        let sweeps = store.counters[.sweep]
        #expect(error { try put("more", in: store) }?.code == .noRoom)
        #expect(store.counters[.sweep] == sweeps)
        try limit { $0.limits.minimumFree = .bytes(1) }
        store.room.impasse.withLock { $0 = nil }
        try put("more", in: store)
    }

    // MARK: What others see

    @Test func `who is pressed is told when the high mark is passed`() throws {
        let calls = Locked(0)
        store.room.onPressure { calls.withLock { $0 += 1 } }
        try limit { $0.limits.maximumEntries = 100 }
        for index in 0..<95 { try put("key \(index)", 10, in: store) }
        #expect(calls.withLock { $0 } == 0)
        #expect(try store.room.overflow() == nil)
        try put("one more", 10, in: store)
        #expect(calls.withLock { $0 } == 1)
        #expect(try store.room.overflow()?.entries == 6)
    }

    @Test func `a miss of a key that was just evicted is told from others, once`() throws {
        let sampled = try #require((0..<10_000).first { Digest(ofKey: "key \($0)").word(3) & 63 == 0 })
        let key = "key \(sampled)"
        try put(key, in: store, at: .now - .seconds(60))
        try put("newer", in: store)
        try fixture.sweep { $0.limits.maximumEntries = 1 }
        #expect(try fixture.get(key) == nil)
        #expect(store.counters[.ghostHit] == 1)
        #expect(try fixture.get(key) == nil)
        #expect(store.counters[.ghostHit] == 1 && store.counters[.miss] == 2)
    }

    @Test func `accesses are noted the finer the sooner entries are evicted`() throws {
        let store = try Store(at: fixture.path)
        #expect(store.accesses.granularity == Accesses.defaultGranularity.saturatingNanoseconds)
        // A directory that is seconds old.
        try limit { $0.limits.maximumEntries = 100 }
        store.followConfiguration()
        #expect(store.accesses.granularity < 20_000_000_000)
        store.control.noteHorizon(.seconds(1600), at: .now)
        store.followConfiguration()
        #expect((100_000_000_000...101_000_000_000).contains(store.accesses.granularity))
        // What was evicted long ago tells less of what will be.
        store.control.noteHorizon(.seconds(1600), at: .now - .seconds(3600))
        store.followConfiguration()
        #expect(store.accesses.granularity == Accesses.defaultGranularity.saturatingNanoseconds)
    }
}

/// The same where it is the disk that is full.
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

    @Test func `nobody waits long for a sweep that does not get on`() throws {
        guard let lock = try store.parts.janitor.take() else { throw Errno.wouldBlock }
        var (stored, failure) = (0, StoreError?.none)
        let time = ContinuousClock().measure {
            while failure == nil, stored < 1000 {
                let bytes = SeededGenerator.bytes(50_000, seed: UInt64(stored))
                let record = Record(content: Content(of: bytes.span), created: .now)
                do throws(StoreError) {
                    try store.put(bytes.span, for: Digest(ofKey: "key \(stored)"), record)
                    stored += 1
                } catch {
                    failure = error
                }
            }
        }
        #expect(failure?.errno == .noSpace && stored > 5)
        #expect(time < patience / 100)
        lock.release()
    }
}
