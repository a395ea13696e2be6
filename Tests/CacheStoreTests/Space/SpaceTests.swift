// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Limits that puts enforce, without a janitor.
@Suite(.takesTurns) struct SpaceTests: RoomSuite {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = fixture.store
    }

    @Test func `a value that can never fit is refused before it is written`() throws {
        try limit { $0.limits.maximumValueSize = .bytes(1000) }
        try put("fits", 1000, in: store)
        #expect(error { try put("long", 1001, in: store) }?.code == .valueTooLarge)
        try limit { $0.limits.maximumValueSize = nil }
        try limitToBlocks(4)
        #expect(error { try put("huge", 5 * 4096, in: store) }?.code == .valueTooLarge)
        #expect(fixture.directory.files(below: "cache/objects").count == 1)
        #expect(try fixture.get("long") == nil && fixture.get("huge") == nil)
        // Another key may have the same value from before the limit.
        try fixture.put("the same", "before")
        try limit { $0.limits.maximumValueSize = .bytes(1) }
        #expect(error { try fixture.put("the same", "after") }?.code == .valueTooLarge)
    }

    @Test func `a file of the maximum possible length is too large for any limit`() async {
        // This once crashed the process.
        await #expect(processExitsWith: .success) {
            // tmpfs allows a file of this length.
            let place = try TemporaryDirectory(below: "/dev/shm")
            let store = try StoreFixture.open(place.path + "/cache")
            try store.configure { $0.limits.maximumSize = .mebibytes(100) }
            makeFile(place.path + "/source")
            try #require(truncate(place.path + "/source", .max) == 0)
            let content = Content(digest: Digest(ofKey: "a"), length: 0, checksum: 0)
            let error = #expect(throws: CacheError.self) {
                _ = try store.stage(
                    copying: FileDescriptor(opening: place.path + "/source", .readOnly),
                    for: Digest(ofKey: "a"),
                    Record(content: content, created: .now)
                )
            }
            #expect(error?.code == .valueTooLarge)
        }
    }

    @Test func `a copy of a file or pipe fails if it exceeds the value size limit`() throws {
        try limit { $0.limits.maximumValueSize = .bytes(300_000) }
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

    @Test func `a put without room evicts the least recently used entries`() throws {
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

    @Test func `at the entry limit an overwrite does not count as a new entry`() throws {
        try limit { $0.limits.maximumEntries = 2 }
        try put("a", in: store, at: .now - .seconds(100))
        try put("b", in: store, at: .now - .seconds(50))
        for count in 1...5 {
            try put("b", 4096 + count, in: store)
            #expect(try store.entries.read(Digest(ofKey: "a")) != nil)
        }
        #expect(store.counters[.sweptEntries] == 0 && store.control.usage?.entries == 2)
    }

    @Test(arguments: [false, true])
    func `a key removed during its overwrite is claimed as a new entry`(isRoomTaken: Bool) throws {
        try limit { $0.limits.maximumEntries = 1 }
        try put("a", in: store)
        let slow = Locked<Store?>(nil)
        var options = StoreOptions()
        options.atStep = { step in
            guard step == .written, slow.withLock({ $0.take() }) != nil else { return }
            #expect(throws: Never.self) {
                #expect(try self.store.remove(Digest(ofKey: "a")))
                if isRoomTaken { try self.put("b", in: self.store) }
            }
        }
        let writer = try Store(at: fixture.path, options: options)
        slow.withLock { $0 = writer }
        try put("a", 5000, in: writer)
        #expect(slow.withLock { $0 } == nil)
        #expect(try store.entries.read(Digest(ofKey: "a")) != nil)
        #expect(store.control.usage?.entries == 1 && fixture.entries.count == 1)
        // The object has its name from the first attempt and is counted once.
        #expect(store.control.usage == fixture.usageOnDisk())
    }

    @Test func `at the size limit replacing a value evicts no other entries`() throws {
        let count = 300
        try limitToBlocks(Int64(count))
        for index in 0..<count { try put("key \(index)", in: store, at: .now - .seconds(1000 - index)) }
        let limit = try #require(store.configuration.limits.maximumSize).bytes
        for round in 1...50 {
            let bytes = SeededGenerator.bytes(4000, seed: UInt64(round))
            let record = Record(content: Content(of: bytes.span), created: .now)
            try store.put(bytes.span, for: Digest(ofKey: "key 299"), record)
            #expect(allocatedSize(at: fixture.path) <= limit + limit / 50)
        }
        #expect(store.counters[.sweptSize] == 0 && fixture.entries.count == count)
        #expect(store.control.usage == fixture.usageOnDisk())
    }

    @Test func `a large value is removed before its replacement if there is no room for both`() throws {
        try limit { $0.limits.maximumSize = .mebibytes(20) }
        for index in 0..<30 { try put("key \(index)", 100_000, in: store, at: .now - .seconds(100 - index)) }
        for round in 0..<3 {
            let bytes = SeededGenerator.bytes(8_000_000, seed: UInt64(round))
            let record = Record(content: Content(of: bytes.span), created: .now)
            try store.put(bytes.span, for: Digest(ofKey: "large"), record)
            #expect(fixture.entries.count == 31)
            #expect(allocatedSize(at: fixture.path) <= 21 << 20)
        }
        #expect(store.counters[.sweptSize] == 2, "each was removed to make room")
        #expect(store.control.usage == fixture.usageOnDisk())
    }

    @Test func `a value removed before its replacement is counted and logged, even if the put fails`() throws
    {
        try limit {
            $0.limits.maximumSize = .mebibytes(20)
            $0.limits.eventLogSize = .mebibytes(1)
        }
        func put(seed: UInt64) throws {
            let bytes = SeededGenerator.bytes(10_000_000, seed: seed)
            try store.put(
                bytes.span,
                for: Digest(ofKey: "large"),
                Record(content: Content(of: bytes.span), created: .now)
            )
        }
        try put(seed: 1)
        let failure = error {
            try SystemCall.withFaults({ [.link, .rename].contains($0) ? .error(.inputOutput) : nil }) {
                try put(seed: 2)
            }
        }
        #expect(failure != nil && store.counters[.sweptSize] == 1)
        #expect(try store.entries.read(Digest(ofKey: "large")) == nil)
        var causes: [LoggedRemoval.Cause] = []
        _ = try EventLog.forEach(in: store.directory) { causes.append($0.cause) }
        #expect(causes == [.collected(.size)])
    }

    @Test func `the size limit applies to the allocated space on disk`() throws {
        try limitToBlocks(64)
        let start = Timestamp.now - .seconds(1000)
        for index in 0..<300 { try put("key \(index)", in: store, at: start + .seconds(index)) }
        let usage = try #require(store.control.usage)
        let blockSize = store.directory.fileSystem.blockSize
        #expect(usage.bytes <= 64 * blockSize && usage.bytes > 32 * blockSize)
        #expect(try store.entries.read(Digest(ofKey: "key 299")) != nil)
        #expect(try store.entries.read(Digest(ofKey: "key 0")) == nil)
    }

    @Test func `room that two sweeps in a row cannot reclaim is reported as impossible`() throws {
        try limit { $0.limits.maximumSize = .gibibytes(1) }
        for index in 0..<5 { try put("value \(index)", in: store) }
        for index in 0..<5 { #expect(try store.remove(Digest(ofKey: "value \(index)"), now: .now)) }
        // As if they had been changed after the sweep began, or the clock had been set back.
        let objects = fixture.directory.files(below: "cache/objects").map { fixture.path + "/objects/" + $0 }
        var pace = SweepPace()
        pace.slice = .zero
        pace.pause = { _ in
            for object in objects { _ = chmod(object, 0o444) }
            return true
        }
        let excess = Excess(size: 4096)
        let first = try store.sweep(for: excess, now: .now, pace: pace)
        #expect(first == .busy && fixture.objects.count == 5)
        let second = try store.sweep(for: excess, now: .now, pace: pace)
        #expect(second == .impossible && fixture.objects.count == 5)
        // The clock has caught up.
        #expect(try store.sweep(for: excess, now: .now, pace: SweepPace()) == .done)
        #expect(fixture.objects.isEmpty)
    }

    @Test func `entries that share a value can be evicted to make room`() throws {
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

    @Test func `the limits hold after the control file is lost`() throws {
        let start = Timestamp.now - .seconds(1000)
        for index in 0..<20 { try put("key \(index)", in: store, at: start + .seconds(index)) }
        try limitToBlocks(24)
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try self.store(patience: .seconds(60))
        #expect(other.control.usage?.isCounted == false)
        for index in 20..<60 { try put("key \(index)", in: other, at: start + .seconds(index)) }
        #expect(other.control.usage?.isCounted == true)
        #expect(fixture.directory.files(below: "cache/objects").count <= 24)
    }

    @Test func `puts continue if part of the directory is unreadable, without a scan each time`() throws {
        try put("old", in: store)
        try limitToBlocks(24)
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try self.store(patience: .seconds(60))
        other.space.failedCount.withLock {
            $0 = SpaceState.FailedCount(end: .now + .seconds(3600), isUnreadable: true)
        }
        try put("new", in: other)
        #expect(other.control.usage?.isCounted == false && other.counters[.sweep] == 0)
    }

    @Test func `each key of a shared value counts towards the entry limit`() throws {
        try limit { $0.limits.maximumEntries = 10 }
        let bytes = Array("shared".utf8)
        for index in 0..<40 {
            let record = Record(content: Content(of: bytes.span), created: .now)
            try store.put(bytes.span, for: Digest(ofKey: "key \(index)"), record)
            #expect(store.control.usage?.entries ?? 40 <= 10)
        }
    }

    @Test(arguments: [UInt64.max, 1 << 63, UInt64.max >> 1, UInt64.max >> 1 - 4096])
    func `no number in the control file causes an overflow`(word: UInt64) throws {
        try limit {
            $0.limits.maximumSize = .gibibytes(1)
            $0.limits.maximumEntries = 1000
            $0.limits.minimumFree = .bytes(.bytes(1))
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
        _ = try other.overflow()
        try fixture.sweep { $0.limits = store.configuration.limits }
        other.followConfiguration()
        #expect(store.control.usage.map { $0.entries <= 4 } ?? false)
    }

    @Test func `replaced values are deleted before values in use`() throws {
        let start = Timestamp.now - .seconds(1000)
        for index in 0..<30 { try put("key \(index)", in: store, at: start + .seconds(index)) }
        // Leaves a list of eviction candidates, with key 0 first.
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

    @Test(arguments: [RemovalReason.size, .entries])
    func `expired entries are deleted before entries in use`(limit: RemovalReason) throws {
        try self.limit {
            if limit == .size { $0.limits.maximumSize = .mebibytes(16) }
            if limit == .entries { $0.limits.maximumEntries = 65 }
        }
        let start = Timestamp.now
        for index in 0..<60 { try put("key \(index)", 100_000, in: store, at: start + .milliseconds(index)) }
        for round in 1...14 {
            let bytes = SeededGenerator.bytes(3_000_000, seed: UInt64(round))
            var record = Record(content: Content(of: bytes.span), created: start + .seconds(round))
            record.expires = record.created + .milliseconds(50)
            if round % 2 == 0 { record.staleFor = .milliseconds(100) }
            try store.put(bytes.span, for: Digest(ofKey: "short \(round)"), record)
        }
        for index in 0..<60 { #expect(try store.entries.read(Digest(ofKey: "key \(index)")) != nil) }
        #expect(store.counters[.sweptSize] == 0 && store.counters[.sweptEntries] == 0)
        #expect(store.counters[.sweptExpired] > 5)
    }

    @Test func `entries removed by a rule are deleted before entries in use`() throws {
        try limit { $0.limits.maximumSize = .mebibytes(16) }
        let start = Timestamp.now - .seconds(1000)
        for index in 0..<60 { try put("key \(index)", 100_000, in: store, at: start + .milliseconds(index)) }
        for round in 1...8 {
            let bytes = SeededGenerator.bytes(3_000_000, seed: UInt64(round))
            var record = Record(content: Content(of: bytes.span), created: .now)
            record.details.tags = ["large"]
            try store.put(bytes.span, for: Digest(ofKey: "large \(round)"), record)
            #expect(store.enact(.remove, .tagged("large"), now: .now))
        }
        for index in 0..<60 { #expect(try store.entries.read(Digest(ofKey: "key \(index)")) != nil) }
        #expect(store.counters[.sweptSize] == 0 && store.counters[.sweptCleared] > 4)
    }

    /// As a janitor does, which does not know the replaced values.
    @Test func `large replaced values are deleted before small values in use`() throws {
        try limit { $0.limits.maximumSize = .mebibytes(16) }
        let start = Timestamp.now - .seconds(1000)
        for index in 0..<60 { try put("key \(index)", 100_000, in: store, at: start + .seconds(index)) }
        for round in 1...20 {
            let bytes = SeededGenerator.bytes(3_000_000 + round, seed: UInt64(round))
            if round % 3 == 0 { #expect(try store.remove(Digest(ofKey: "large"), now: .now)) }
            let record = Record(content: Content(of: bytes.span), created: .now)
            try store.put(bytes.span, for: Digest(ofKey: "large"), record)
            if let excess = try store.overflow() {
                _ = try store.relieve(excess, now: .now, pace: SweepPace())
            }
        }
        for index in 0..<60 { #expect(try store.entries.read(Digest(ofKey: "key \(index)")) != nil) }
        #expect(store.counters[.sweptOrphan] > 10)
    }

    @Test(.enabled(if: Mount.canFormat("ext4"), "mounting a file system needs root"))
    func `values stored while the clock was ahead are evicted like others`() throws {
        let mount = try Mount(imageOf: "ext4", megabytes: 100)
        let path = mount.path + "/cache"
        do {
            let store = try StoreFixture.open(path)
            try store.configure { (configuration) throws(CacheError) in
                configuration.limits.maximumSize = ByteCount(store.overhead + 100 * 100_000)
            }
            for index in 0..<95 {
                try put("key \(index)", 100_000, in: store, at: .now - .seconds(1000 - index))
            }
        }
        let objects = mount.directory.files(below: "mount/cache/objects").map { "cache/objects/" + $0 }
        try mount.setChangeTime(of: objects, to: Date() + 86_400)
        let store = try StoreFixture.open(path)
        for index in 95..<125 { try put("key \(index)", 100_000, in: store, at: .now) }
        let left = try (0..<125).filter { try store.entries.read(Digest(ofKey: "key \($0)")) != nil }
        #expect(left.count > 80 && left.last == 124)
        #expect(left == Array(left[0]..<125), "the least recently used went")
        // An orphan is deleted by the first collection.
        #expect(try store.remove(Digest(ofKey: "key \(left[0])"), now: .now))
        let report = try #require(
            try Sweep.runIfDue(SweepRequest(), on: store, now: .now) { _ in true }
        )
        #expect(report.removed[.orphan]?.count == 1 && report.spared == 0)
    }

    @Test func `an unattainable minimum of free space fails puts without repeated sweeps`() throws {
        try put("there", in: store)
        let free = try store.directory.root.descriptor.fileSystemSpace().availableBytes
        try limit { $0.limits.minimumFree = .bytes(ByteCount(free * 2)) }
        #expect(error { try put("more", in: store) }?.code == .noRoom)
        // Not every put sweeps.
        let sweeps = store.counters[.sweep]
        #expect(error { try put("more", in: store) }?.code == .noRoom)
        #expect(store.counters[.sweep] == sweeps)
        try limit { $0.limits.minimumFree = .bytes(.bytes(1)) }
        store.space.futileSweep.withLock { $0 = nil }
        try put("more", in: store)
    }

    @Test(.enabled(if: Mount.canFormat("ext4"), "mounting a file system needs root"))
    func `on a full disk longer records evict what they need, not what their values take`() throws {
        let mount = try Mount(imageOf: "ext4", megabytes: 60, ["-m", "0"])
        let store = try StoreFixture.open(mount.path + "/cache")
        try store.configure { (configuration) throws(CacheError) in
            configuration.limits.maximumEntries = 1000
        }
        for index in 0..<20 { try put("key \(index)", 500_000, in: store) }
        for index in 0..<6 { try put("long \(index)", 2_000_000, in: store) }
        let filler = try FileDescriptor(
            opening: mount.path + "/filler",
            [.writeOnly, .create],
            mode: 0o600
        )
        let block = [UInt8](repeating: 1, count: 4096)
        let full = #expect(throws: Errno.self) { while true { try filler.writeAll(block.span) } }
        #expect(full == .noSpace)
        for index in 0..<6 {
            let key = Digest(ofKey: "long \(index)")
            let live = try #require(try store.liveEntry(key, now: .now, allowingStale: false))
            var record = live.record
            // It takes a block beside the inode.
            record.details.metadata = ["text": String(repeating: "\(index)", count: 3000)]
            #expect(try store.rewrite(record, for: key, ifStill: live.stored, now: .now).isWritten)
            // The blocks that an eviction has freed.
            while (try? filler.writeAll(block.span)) != nil {}
        }
        let left = try (0..<20).filter { try store.entries.read(Digest(ofKey: "key \($0)")) != nil }
        #expect((12..<20).contains(left.count), "\(left.count) of 20")
    }

    @Test func `the call depth of the pressure listener does not grow with each call`() throws {
        try limit { $0.limits.maximumEntries = 10 }
        let depths = Locked<[Int]>([])
        store.onPressure {
            let depth = Thread.callStackReturnAddresses.count
            depths.withLock { $0.append(depth) }
        }
        // If each call went through one more function, a process with many puts would overflow its stack.
        for count in 0..<100 { try put("key \(count % 10)", 1 + count, in: store) }
        let found = depths.withLock { $0 }
        #expect(found.count > 50)
        // A put that makes room and retries calls the listener from another place.
        #expect(Set(found).count <= 2)
    }

    @Test func `the pressure listener is called when the high mark is passed`() throws {
        let calls = Locked(0)
        store.onPressure { calls.withLock { $0 += 1 } }
        try limit { $0.limits.maximumEntries = 100 }
        for index in 0..<95 { try put("key \(index)", 10, in: store) }
        #expect(calls.withLock { $0 } == 0)
        #expect(try store.overflow() == nil)
        try put("one more", 10, in: store)
        #expect(calls.withLock { $0 } == 1)
        #expect(try store.overflow()?.entries == 6)
    }

    @Test func `a miss of a recently evicted key counts as a ghost hit once`() throws {
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

    @Test func `access times are recorded more finely if entries are evicted sooner`() throws {
        let store = try Store(at: fixture.path)
        #expect(store.accesses.granularity == Accesses.defaultGranularity.saturatingNanoseconds)
        // The directory is only seconds old.
        try limit { $0.limits.maximumEntries = 100 }
        store.followConfiguration()
        #expect(store.accesses.granularity < 20_000_000_000)
        store.control.noteHorizon(.seconds(1600), at: .now)
        store.followConfiguration()
        #expect((100_000_000_000...101_000_000_000).contains(store.accesses.granularity))
        // An eviction long ago predicts less about the next ones.
        store.control.noteHorizon(.seconds(1600), at: .now - .seconds(3600))
        store.followConfiguration()
        #expect(store.accesses.granularity == Accesses.defaultGranularity.saturatingNanoseconds)
    }
}
