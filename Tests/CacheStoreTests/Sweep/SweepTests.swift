// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct SweepTests {
    @Test(arguments: RecordForm.both)
    func `values in use stay, and orphans are deleted at once`(form: RecordForm) throws {
        let fixture = try StoreFixture(form)
        try fixture.put("old", "key")
        try fixture.put("new", "key")
        try fixture.put("shared", "a")
        try fixture.put("shared", "b")
        let report = try fixture.sweep()
        #expect(report.removed.keys.sorted { $0.rawValue < $1.rawValue } == [.orphan])
        #expect(report.removed[.orphan]?.count == 1)
        #expect(fixture.objects.count == 2)
        #expect(report.entries.count == 3)
        #expect(report.objects.count == 2)
        #expect(try fixture.get("key") == "new")
        #expect(try fixture.get("b") == "shared")
    }

    @Test func `many held stripes delay a sweep little more than one`() throws {
        let fixture = try StoreFixture()
        for index in 0..<50 { try fixture.put("value \(index)", "key \(index)", expires: .now) }
        var locks: [Int32] = []
        defer { for lock in locks { close(lock) } }
        for tree in Tree.allCases {
            for stripe in 0..<StoreLayout.stripeCount {
                let name = StoreLayout.lockName(tree, stripe).description
                locks.append(open(fixture.path + "/locks/" + name, O_RDWR | O_CREAT | O_CLOEXEC, 0o666))
                try #require(flock(locks.last ?? -1, LOCK_SH) == 0)
            }
        }
        // A quarter of the time that the stripes of one kind would take one after another.
        let limit = SweepRequest.usualStripePatience * (StoreLayout.stripeCount / 4)
        let time = try shortestTime(below: limit) {
            // A new store each time, which knows of no held stripe.
            let store = try Store(at: fixture.path)
            let report = try Sweep.run(SweepRequest(), on: store, now: .now)
            #expect(report.skippedStripes.count >= 64 && fixture.objects.count == 50)
        }
        #expect(time < limit)
    }

    @Test func `an expired entry is removed with its object and counted once with the bytes of both`() throws
    {
        let fixture = try StoreFixture()
        try fixture.put("value", "key", expires: .now + .seconds(1))
        let report = try fixture.sweep(now: .now + .seconds(2))
        #expect(report.removed.count == 1)
        #expect(report.removed[.expired]?.count == 1)
        #expect(report.removed[.expired]?.bytes == 4096 || report.removed[.expired]?.bytes == 8192)
        #expect(fixture.objects.isEmpty && fixture.entries.isEmpty)
        #expect(report.objects.count == 0 && report.objects.bytes == 0)
        #expect(report.entries.count == 0 && report.entries.bytes == 0)
    }

    @Test func `a link to itself in place of a shard does not stop the sweep`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.put("gone", "expired", expires: .now)
        let shard = String(fixture.objectPath("value").dropLast(65))
        try FileManager.default.removeItem(atPath: shard)
        try FileManager.default.createSymbolicLink(atPath: shard, withDestinationPath: shard)
        #expect(try fixture.sweep { $0.isDryRun = true }.removed[.expired]?.count == 1)
        #expect(try fixture.sweep().removed[.expired]?.count == 1)
        #expect(try fixture.get("expired") == nil)
    }

    @Test(arguments: [1, 1 << 20])
    func `the record of a sweep can be read if other bytes follow it`(count: Int) throws {
        let fixture = try StoreFixture()
        try fixture.sweep()
        let record = try #require(SweepRecord.last(in: fixture.store.directory))
        let path = fixture.path + "/locks/janitor"
        try #require(truncate(path, off_t(try FileStatus.of(path).size) + off_t(count)) == 0)
        #expect(SweepRecord.last(in: fixture.store.directory) == record)
        try fixture.sweep()
        #expect(try #require(SweepRecord.last(in: fixture.store.directory)).began > record.began)
    }

    @Test func `a stale value stays until its stale time has passed`() throws {
        let fixture = try StoreFixture()
        let start = Timestamp.now
        var record = fixture.record("value", created: start)
        record.expires = start + .seconds(10)
        record.staleFor = .seconds(10)
        try fixture.store.put(Array("value".utf8).span, for: Digest(ofKey: "key"), record)
        #expect(try fixture.sweep(now: start + .seconds(19)).removed.isEmpty)
        #expect(try fixture.sweep(now: start + .seconds(20)).removed[.expired]?.count == 1)
    }

    @Test func `a dry run deletes nothing and reports what the next run deletes`() throws {
        let fixture = try StoreFixture()
        for index in 0..<20 {
            try fixture.put("value \(index / 2)", "key \(index)", expires: index < 5 ? .now : nil)
        }
        try fixture.put("new", "key 19")
        let limits = { (request: inout SweepRequest) in request.limits.maximumEntries = 7 }
        let before = fixture.directory.files()
        let rehearsal = try fixture.sweep {
            limits(&$0)
            $0.isDryRun = true
        }
        #expect(
            fixture.directory.files().filter { !$0.contains("/locks/") }
                == before.filter { !$0.contains("/locks/") }
        )
        let report = try fixture.sweep(limits)
        #expect(report.removed == rehearsal.removed)
        #expect(report.entries == rehearsal.entries)
        #expect(report.objects == rehearsal.objects)
        #expect(report.removed[.expired]?.count == 5)
        #expect(report.entries.count == 7)
    }

    @Test func `an expired-only sweep leaves orphans and entries over a limit`() throws {
        let fixture = try StoreFixture()
        try fixture.put("old", "key")
        try fixture.put("new", "key")
        try fixture.put("gone", "expired", expires: .now)
        let report = try fixture.sweep {
            $0.expiredOnly = true
            $0.limits.maximumEntries = 0
        }
        #expect(Set(report.removed.keys) == [.expired])
        #expect(fixture.objects.count == 2)
        #expect(try fixture.get("key") == "new")
    }

    @Test func `a sweep evicts the least recently used entries and keeps those just read`() throws {
        let fixture = try StoreFixture()
        let start = Timestamp.now
        for index in 0..<10 {
            let key = Digest(ofKey: "key \(index)")
            try fixture.store.put(
                Array("v\(index)".utf8).span,
                for: key,
                fixture.record("v\(index)", created: start + .seconds(index))
            )
        }
        #expect(try fixture.get("key 0", now: start + .seconds(100)) == "v0")
        try fixture.sweep(now: start + .seconds(101)) { $0.limits.maximumEntries = 3 }
        let left = try (0..<10).filter { try fixture.get("key \($0)", now: start + .seconds(102)) != nil }
        #expect(left == [0, 8, 9])
    }

    @Test func `leftovers of killed writers are deleted, files of live writers stay`() throws {
        let fixture = try StoreFixture()
        let entry = fixture.entryPath("half")
        try fixture.put("x", "half")
        try FileManager.default.removeItem(atPath: entry)
        makeFile(entry)
        makeFile(fixture.path + "/tmp/put-dead", "dead")
        let live = try TemporaryFile(in: fixture.store.directory, mode: 0o600)
        let report = try fixture.sweep()
        #expect(report.removed[.staleTemporary]?.count == 1)
        #expect(report.removed[.corrupt]?.count == 1)
        #expect(report.removed[.orphan]?.count == 1)
        #expect(fixture.temporaries.count == 1)
        let isThere = try live.file.status().linkCount
        #expect(isThere == 1)
    }

    @Test func `a partial file of any length is counted without overflow`() throws {
        // Other file systems do not allow such a length.
        let path = "/dev/shm/diskcache-test-\(UInt64.random(in: 0 ... .max))"
        let file = try FileDescriptor(opening: path, [.readWrite, .create, .exclusive])
        try FileManager.default.removeItem(atPath: path)
        try file.truncate(to: .max)
        let fixture = try StoreFixture()
        #expect(PartialFile.mostCounted(try file.status(), in: fixture.store.directory) > 1 << 60)
    }

    @Test func `unrecognised files are reported and never touched`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        let object = Digest(of: Array("value".utf8).span).description
        let shard = String(object.prefix(2))
        let wrongShard = shard == "00" ? "01" : "00"
        let names = [
            "objects/\(shard)/notes.txt", "objects/\(shard)/\(object.uppercased())", "tmp/notes.txt",
            "tmp/put-list.txt", "tmp/setup-of-the-project", "objects/\(shard)/put-",
            "entries/\(wrongShard)/\(object)",
        ]
        try FileManager.default.createDirectory(
            atPath: fixture.path + "/entries/\(wrongShard)",
            withIntermediateDirectories: true
        )
        for name in names {
            makeFile(fixture.path + "/" + name)
        }
        let report = try fixture.sweep { $0.limits.maximumEntries = 0 }
        #expect(report.unrecognised.sorted() == names.sorted())
        for name in names { #expect(FileManager.default.fileExists(atPath: fixture.path + "/" + name)) }
    }

    @Test func `a stray directory beside the shards is not treated as a shard`() throws {
        let fixture = try StoreFixture()
        for index in 0..<600 { try fixture.put("value", "key \(index)") }
        for name in ["0g", "g0", "FF", "f", "fff", "\u{e9}"] {
            try FileManager.default.createDirectory(
                atPath: fixture.path + "/entries/" + name,
                withIntermediateDirectories: false
            )
        }
        let shards = fixture.store.shards(.entries)
        #expect(Set(shards).count == shards.count)
        #expect(try fixture.sweep().entries.count == 600)
    }

    @Test func `an object reused by a put since the stamp is spared`() throws {
        // A put comes in between, after all entries were read.
        let fixture = try StoreFixture()
        try fixture.put("value", "old")
        _ = try fixture.store.remove(Digest(ofKey: "old"))
        let isPut = FailureCount()
        var request = SweepRequest()
        request.patience = .zero
        request.progress = { progress in
            guard progress.phase == .scanning, progress.done >= 256, isPut.all.isEmpty else { return }
            isPut.add("yes")
            try? fixture.put("value", "new")
        }
        _ = try Sweep.run(request, on: fixture.store, now: .now)
        #expect(isPut.all == ["yes"])
        #expect(try fixture.get("new") == "value")
    }

    @Test func `an entry overwritten or read since the scan is spared`() throws {
        let fixture = try StoreFixture()
        for key in ["overwritten", "read", "idle"] { try fixture.put("value of \(key)", key) }
        let isDone = FailureCount()
        var request = SweepRequest()
        request.limits.maximumEntries = 0
        request.progress = { progress in
            guard progress.phase == .deleting, isDone.all.isEmpty else { return }
            isDone.add("yes")
            try? fixture.put("new value", "overwritten")
            _ = try? fixture.get("read", now: .now + .seconds(1))
        }
        let report = try Sweep.run(request, on: fixture.store, now: .now)
        #expect(try fixture.get("overwritten") == "new value")
        #expect(try fixture.get("read") == "value of read")
        #expect(try fixture.get("idle") == nil)
        #expect(report.spared >= 2)
    }

    @Test func `an entry with a link in place of its object is removed, and the link stays`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try FileManager.default.removeItem(atPath: fixture.objectPath("value"))
        #expect(symlink("/nowhere", fixture.objectPath("value")) == 0)
        #expect(try fixture.sweep().removed[.dangling]?.count == 1)
        #expect(fixture.entries.isEmpty)
        let link = try FileManager.default.destinationOfSymbolicLink(atPath: fixture.objectPath("value"))
        #expect(link == "/nowhere")
    }

    @Test func `only one process sweeps at a time, and another one gets the error busy`() throws {
        let fixture = try StoreFixture()
        let lock = try LockFile.acquire(
            StoreLayout.janitorLock,
            in: fixture.store.directory.locks,
            patience: .zero
        )
        #expect { try fixture.sweep { $0.patience = .milliseconds(5) } } throws: {
            ($0 as? CacheError)?.code == .busy
        }
        lock?.release()
        try fixture.sweep()
    }

    @Test func `a stripe with a stopped lock holder is skipped and named, and its objects stay`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        _ = try fixture.store.remove(Digest(ofKey: "key"))
        let digest = Digest(of: Array("value".utf8).span)
        let other = try StoreFixture.open(fixture.path)
        let lock = try other.objects.stripes.lock(.shared, stripe: digest.stripe)
        let report = try Sweep.run(SweepRequest(), on: fixture.store, now: .now)
        #expect(report.skippedStripes == ["\(StoreLayout.lockName(.objects, digest.stripe))"])
        #expect(report.removed.isEmpty)
        lock.release()
        #expect(fixture.objects.count == 1)
        #expect(try fixture.sweep().removed[.orphan]?.count == 1)
    }

    /// Entry and object both stay, although the scan may have seen only one of them.
    @Test func `values stored at any time of a scan stay`() throws {
        let fixture = try StoreFixture()
        for number in 0..<200 { try fixture.put("value \(number)", "key \(number)") }
        let names = Locked.Box([String]())
        var request = SweepRequest()
        request.progress = { progress in
            guard progress.phase == .scanning else { return }
            let name = "while \(progress.done)"
            try? fixture.put(name, name)
            names.value.withLock { $0.append(name) }
        }
        let report = try Sweep.run(request, on: fixture.store, now: .now)
        #expect(report.removed.isEmpty)
        let all = names.value.withLock { $0 }
        #expect(!all.isEmpty)
        for name in all { #expect(try fixture.get(name) == name) }
    }

    @Test func `objects of a skipped stripe stay if its lock holder continues during the sweep`() throws {
        // The lock holder may publish an entry that the sweep has not seen.
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.put("other", "other", expires: .now)
        _ = try fixture.store.remove(Digest(ofKey: "key"))
        let digest = Digest(of: Array("value".utf8).span)
        let holder = try StoreFixture.open(fixture.path)
        let isHeld = DispatchSemaphore(value: 0)
        let mayGo = DispatchSemaphore(value: 0)
        let hasGone = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            guard let lock = try? holder.objects.stripes.lock(.shared, stripe: digest.stripe) else { return }
            isHeld.signal()
            mayGo.wait()
            lock.release()
            hasGone.signal()
        }
        isHeld.wait()
        var request = SweepRequest()
        request.progress = { progress in
            guard progress.phase == .scanning, progress.done == 0 else { return }
            mayGo.signal()
            _ = hasGone.wait(timeout: .now() + 1)
        }
        let report = try Sweep.run(request, on: fixture.store, now: .now)
        #expect(report.skippedStripes.count == 1)
        #expect(report.removed[.orphan] == nil)
        #expect(FileManager.default.fileExists(atPath: fixture.objectPath("value")))
    }
}
