// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// The usage in the control file, compared with the file system.
@Suite(.takesTurns) struct UsageTests: RoomSuite {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = fixture.store
    }

    /// Stores a value of `count` bytes with a key of `keyLength` bytes in its record.
    private func put(_ name: String, keyLength: Int, _ count: Int = 4096, metadata: Int = 0) throws {
        let bytes = SeededGenerator.bytes(count, seed: UInt64(name.utf8.count * 7919 + count))
        var record = Record(content: Content(of: bytes.span), created: .now)
        record.key = name.padding(toLength: keyLength, withPad: "x", startingAt: 0)
        if metadata > 0 { record.details.metadata = ["note": String(repeating: "m", count: metadata)] }
        try store.put(bytes.span, for: Digest(ofKey: name), record)
    }

    private func expectUsageOfDirectory(_ comment: Comment, _ location: SourceLocation = #_sourceLocation)
        throws
    {
        #expect(store.control.usage == fixture.usageOnDisk(), comment, sourceLocation: location)
    }

    @Test(arguments: [1, 16, 17, 60, 1000, 3500, 5000, 30_000])
    func `puts and removals change the usage by the entry's size on disk`(keyLength: Int) throws {
        try put("a", keyLength: keyLength)
        try expectUsageOfDirectory("one")
        try put("b", keyLength: keyLength)
        try expectUsageOfDirectory("two")
        try put("b", keyLength: keyLength, 5000)
        try expectUsageOfDirectory("replaced")
        #expect(try store.remove(Digest(ofKey: "a")))
        try expectUsageOfDirectory("removed")
    }

    /// The point of a sweep at which a writer begins.
    enum Beginning: CaseIterable {
        case beforeBarrier, withEntries, withObjects

        func isReached(by progress: CacheProgress) -> Bool {
            switch self {
            case .beforeBarrier: progress.phase == .waiting
            case .withEntries: progress.phase == .scanning
            case .withObjects: progress.phase == .scanning && progress.done >= StoreLayout.shardCount
            }
        }
    }

    @Test(arguments: Beginning.allCases)
    func `a sweep does not subtract a counted object that has no name yet`(begin: Beginning) throws {
        try put("a", keyLength: 1)
        let (counted, sweepEnded, ended) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        var options = StoreOptions()
        options.atStep = { step in
            guard step == .counted else { return }
            counted.signal()
            sweepEnded.wait()
        }
        let writer = try Store(at: fixture.path, options: options)
        let hasBegun = Locked(false)
        try fixture.sweep {
            $0.stripePatience = .milliseconds(1)
            $0.progress = { progress in
                let isFirst = hasBegun.withLock { begun in
                    guard !begun, begin.isReached(by: progress) else { return false }
                    begun = true
                    return true
                }
                guard isFirst else { return }
                Thread.detachNewThread {
                    defer { ended.signal() }
                    #expect(throws: Never.self) { try self.put("large", 1 << 20, in: writer) }
                }
                counted.wait()
            }
        }
        // The next sweep subtracts an older error of the usage and leaves the object alone.
        store.control.addUsage(bytes: 1_000_000_000, entries: 0)
        try fixture.sweep { $0.stripePatience = .milliseconds(1) }
        sweepEnded.signal()
        ended.wait()
        #expect(hasBegun.withLock { $0 })
        try expectUsageOfDirectory("the object has its name")
    }

    @Test func `a sweep subtracts an object that a killed writer counted but did not name`() throws {
        try put("a", keyLength: 1)
        store.control.noteUnnamed(1_000_000, stripe: 7)
        store.control.addUsage(bytes: 1_000_000, entries: 0)
        try fixture.sweep()
        try expectUsageOfDirectory("the writer is gone")
        store.control.addUsage(bytes: -1_000_000, entries: 0)
        try fixture.sweep()
        try expectUsageOfDirectory("counted too low")
    }

    /// Writes `pieces` pieces into a partial download, and reserves room for each beforehand.
    private func grow(_ partial: PartialFile, by pieces: Int) throws {
        let piece = SeededGenerator.bytes(PartialFile.longestPiece, seed: 7)
        for _ in 0..<pieces {
            let length = try partial.length() + piece.count
            #expect(try store.reserve(length, of: nil, in: partial, now: .now) > length)
            try partial.file.write(piece.span)
        }
    }

    private func downloaded(_ key: String) throws -> PartialFile {
        let partial = try #require(try PartialFile.open(Digest(ofKey: key), in: store.control))
        try grow(partial, by: 20)
        return partial
    }

    private func store(_ partial: PartialFile, under key: String) throws {
        _ = try store.put(partial, for: Digest(ofKey: key)) { content in
            Record(content: content, created: .now)
        }
    }

    @Test(arguments: Beginning.allCases)
    func `a download that grows during a sweep stays counted`(begin: Beginning) throws {
        try put("a", keyLength: 1)
        let others = fixture.usageOnDisk()
        let partial = try downloaded("b")
        let hasBegun = Locked(false)
        try fixture.sweep {
            $0.progress = { progress in
                let isFirst = hasBegun.withLock { begun in
                    guard !begun, begin.isReached(by: progress) else { return false }
                    begun = true
                    return true
                }
                if isFirst { #expect(throws: Never.self) { try self.grow(partial, by: 60) } }
            }
        }
        #expect(hasBegun.withLock { $0 })
        #expect(store.control.usage?.bytes == others.bytes + partial.counted)

        // A sweep subtracts an error that is larger than any reservation of a process.
        store.control.addUsage(bytes: 1_000_000_000, entries: 0)
        try fixture.sweep()
        let present = try #require(store.control.usage).bytes - others.bytes - partial.counted
        #expect(0...(2 << 20) ~= present)

        // No process writes it any more, so the usage counts its blocks.
        partial.letGo()
        try fixture.sweep()
        #expect(try store.control.usage?.bytes == others.bytes + partial.file.status().allocatedSize)
        partial.discard()
        try fixture.sweep()
        try expectUsageOfDirectory("the download is given up")
    }

    @Test func `a dry run evicts nothing for a partial download that the sweep deletes`() throws {
        try put("a", keyLength: 1, 1 << 20)
        let used = fixture.usageOnDisk().bytes
        let partial = try downloaded("b")
        partial.letGo()
        // Room for the value, but not for the partial download.
        let limits = CacheLimits(maximumSize: .bytes(Int(used + store.overhead) + (1 << 20)))
        for isDryRun in [true, false] {
            let report = try fixture.sweep {
                $0.limits = limits
                $0.partialLife = .zero
                $0.isDryRun = isDryRun
            }
            #expect(Array(report.removed.keys) == [.staleTemporary])
            #expect(report.entries.count == 1)
        }
    }

    @Test func `a download that becomes an object while the objects are scanned is counted once`() throws {
        // Creates the shard of the object, so that it is scanned.
        let first = try downloaded("b")
        try store(first, under: "b")
        #expect(try store.remove(Digest(ofKey: "b")))

        let partial = try downloaded("b")
        let hasBegun = Locked(false)
        try fixture.sweep {
            $0.progress = { progress in
                let isFirst = hasBegun.withLock { begun in
                    guard !begun, Beginning.withObjects.isReached(by: progress) else { return false }
                    begun = true
                    return true
                }
                guard isFirst else { return }
                #expect(throws: Never.self) { try self.store(partial, under: "b") }
            }
        }
        #expect(hasBegun.withLock { $0 })
        try expectUsageOfDirectory("stored")
    }

    @Test(.enabled(if: Mount.isAllowed, "mounting a file system needs root"))
    func `each shard counts as one cluster if the file system allocates clusters`() throws {
        let options = ["-O", "bigalloc", "-C", "65536"]
        let mount = try Mount(imageOf: "ext4", megabytes: 100, options)
        let store = try StoreFixture.open(mount.path + "/cache")
        #expect(store.directory.usualOverhead >= 2 * 256 * 65536)
        #expect(fixture.store.directory.usualOverhead < 2 * 256 * 65536)
    }

    /// ext4 allocates a block for the extents of a fragmented file when it writes the file to the medium.
    @Test(.enabled(if: Mount.isAllowed, "mounting a file system needs root"))
    func `extent blocks are counted if free space is fragmented`() throws {
        // With a journal: without one ext4 checks each recently deleted file before it creates another.
        let mount = try Mount(imageOf: "ext4", megabytes: 20, ["-b", "1024", "-N", "25000"])
        let root = open(mount.path, O_RDONLY | O_DIRECTORY)
        try #require(root >= 0)
        defer { close(root) }
        let block = [UInt8](repeating: 1, count: 1000)
        var files = 0
        var isFull = false
        while !isFull {
            let file = openat(root, "\(files)", O_CREAT | O_WRONLY, 0o600)
            isFull = file < 0 || write(file, block, block.count) < block.count
            close(file)
            files += 1
        }
        for index in stride(from: 0, to: files, by: 2) { unlinkat(root, "\(index)", 0) }
        let path = mount.path + "/cache"
        let store = try StoreFixture.open(path)
        var taken = 0
        func put(_ index: Int) throws {
            let bytes = SeededGenerator.bytes(4800, seed: UInt64(index))
            let record = Record(content: Content(of: bytes.span), created: .now)
            try store.put(bytes.span, for: Digest(ofKey: "\(index)"), record)
        }
        func onDisk() throws -> Int64 {
            sync()
            var sum: Int64 = 0
            for tree in ["objects", "entries"] {
                for file in mount.directory.files(below: "mount/cache/\(tree)") {
                    sum += try FileStatus.of("\(path)/\(tree)/\(file)").allocatedSize
                }
            }
            return sum
        }
        for index in 0..<200 { try put(index) }
        try #require(try onDisk() > store.control.usage?.bytes ?? 0, "free space is in pieces")
        // A collection detects it, and later puts count it.
        _ = try Sweep.runIfDue(SweepRequest(), on: store, now: .now) { _ in true }
        #expect(try store.control.usage?.bytes == onDisk())
        taken = try #require(Int(exactly: store.control.usage?.bytes ?? 0))
        for index in 200..<400 { try put(index) }
        #expect(try store.control.usage?.bytes ?? 0 >= onDisk(), "\(taken)")
    }

    @Test func `claims for long values include an index block once one has been found`() {
        let (control, short, long) = (store.control, 1000, 100_000)
        let before = [short, long].map { control.expectedAllocation(of: $0) }
        control.noteIndexBlocks(true)
        let block = store.directory.fileSystem.blockSize
        #expect(control.expectedAllocation(of: short) == before[0])
        #expect(control.expectedAllocation(of: long) == before[1] + block)
        control.noteIndexBlocks(false)
        #expect(control.expectedAllocation(of: long) == before[1])
    }

    @Test func `the usage follows a record that outgrows its inode and shrinks again`() throws {
        for metadata in [0, 100, 0, 3000, 100, 6000, 0, 10, 6000, 3000, 10] {
            try put("a", keyLength: 1, metadata: metadata)
            try expectUsageOfDirectory("metadata of \(metadata) bytes")
        }
    }

    @Test func `the usage follows a record that is renewed with other metadata`() throws {
        try put("a", keyLength: 1)
        let key = Digest(ofKey: "a")
        for metadata in [100, 0, 6000, 3000] {
            let stored = try #require(try store.entries.read(key))
            var record = try #require(stored.record)
            record.details.metadata = ["note": String(repeating: "m", count: metadata)]
            #expect(try store.rewrite(record, for: key, ifStill: stored, now: .now).isWritten)
            try expectUsageOfDirectory("metadata of \(metadata) bytes")
        }
    }

    @Test func `renewing a record claims the additional space`() throws {
        try limitToBlocks(4)
        for name in ["a", "b", "c", "d"] { try put(name, keyLength: 1) }
        let key = Digest(ofKey: "d")
        let stored = try #require(try store.entries.read(key))
        var record = try #require(stored.record)
        record.details.metadata = ["note": String(repeating: "m", count: 3000)]
        #expect(try store.rewrite(record, for: key, ifStill: stored, now: .now).isWritten)
        let usage = try #require(store.control.usage)
        #expect(usage.bytes <= 4 * store.directory.fileSystem.blockSize)
        try expectUsageOfDirectory("renewed")
    }

    @Test func `long records of another process are subtracted, too`() throws {
        let other = try Store(at: fixture.path)
        try put("a", keyLength: 60)
        try put("b", keyLength: 60)
        #expect(try other.remove(Digest(ofKey: "a")))
        try expectUsageOfDirectory("removed")
        let bytes = Array("value".utf8)
        try other.put(
            bytes.span,
            for: Digest(ofKey: "b"),
            Record(content: Content(of: bytes.span), created: .now)
        )
        try expectUsageOfDirectory("replaced")
    }

    @Test func `existing entries are subtracted correctly after the control file is recreated`() throws {
        for name in ["a", "b", "c"] { try put(name, keyLength: 60) }
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try Store(at: fixture.path)
        #expect(!other.control.entriesTakeNoSpace)
        #expect(try other.remove(Digest(ofKey: "a")))
        _ = try Sweep.run(SweepRequest(), on: other, now: .now)
        #expect(other.control.usage == fixture.usageOnDisk() && !other.control.entriesTakeNoSpace)
        #expect(try other.remove(Digest(ofKey: "b")) && other.remove(Digest(ofKey: "c")))
        #expect(other.control.usage == fixture.usageOnDisk())
        // Once a sweep has found that no entry takes space, overwrites do not stat the entry.
        _ = try Sweep.run(SweepRequest(), on: other, now: .now)
        #expect(other.control.entriesTakeNoSpace)
        let number = try #require(other.control.recordsWithSpace)
        other.control.noteEntryWithSpace()
        other.control.noteNoEntryWithSpace(since: number)
        #expect(!other.control.entriesTakeNoSpace)
    }

    @Test func `an object that replaces a damaged one is counted once`() throws {
        try fixture.put("value", "a")
        let object = fixture.objectPath("value")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: object)
        try Data(repeating: 1, count: 9000).write(to: URL(fileURLWithPath: object))
        let usage = try #require(store.control.usage)
        let damage = try FileStatus.of(object).allocatedSize - store.directory.allocation(of: 5)
        try fixture.put("value", "b")
        // The damaged object was counted with its original size.
        #expect(store.control.usage?.bytes == usage.bytes - damage)
    }

    @Test func `with keys of 60 bytes the size limit applies to the allocated space on disk`() throws {
        let limit = 8 << 20
        try self.limit { $0.limits.maximumSize = .bytes(limit) }
        let start = Timestamp.now - .seconds(10_000)
        var most: Int64 = 0
        for index in 0..<3000 {
            let bytes = SeededGenerator.bytes(4000, seed: UInt64(index))
            var record = Record(content: Content(of: bytes.span), created: start + .seconds(index))
            record.key = "key \(index)".padding(toLength: 60, withPad: "x", startingAt: 0)
            try store.put(bytes.span, for: Digest(ofKey: "key \(index)"), record)
            if index % 100 == 99 { most = max(most, allocatedSize(at: fixture.path)) }
        }
        #expect(Double(most) <= 1.05 * Double(limit), "\(Double(most) / Double(limit))")
        #expect(store.control.usage == fixture.usageOnDisk())
    }
}

/// Allocated sizes that are learned from earlier files.
@Suite(.takesTurns) struct LearnedAllocationTests {
    @Test func `a length between two of equal allocation has the same, and other lengths are unknown`() {
        let known = LearnedAllocation()
        known.note(0, ofLength: 10)
        known.note(0, ofLength: 60)
        known.note(4096, ofLength: 100)
        known.note(4096, ofLength: 90)
        #expect(
            [9, 10, 30, 60, 61, 89, 90, 95, 100, 101].map { known.size(ofLength: $0) } == [
                nil, 0, 0, 0, nil, nil, 4096, 4096, 4096, nil,
            ]
        )
    }

    @Test(arguments: [(0, 95), (8192, 95), (8192, 30), (4096, 50)])
    func `all lengths become unknown if a longer file takes less than a shorter one`(
        size: Int64,
        length: Int
    ) {
        let known = LearnedAllocation()
        known.note(0, ofLength: 10)
        known.note(0, ofLength: 60)
        known.note(4096, ofLength: 90)
        known.note(4096, ofLength: 100)
        known.note(size, ofLength: length)
        known.note(0, ofLength: 10)
        #expect([10, 30, 60, 95].allSatisfy { known.size(ofLength: $0) == nil })
    }
}
