// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct StoreTests {
    @Test(arguments: RecordForm.both)
    func `a value is returned byte for byte until it is replaced or removed`(form: RecordForm) throws {
        let fixture = try StoreFixture(form)
        #expect(try fixture.get("key") == nil)
        try fixture.put("one", "key")
        #expect(try fixture.get("key") == "one")
        try fixture.put("two", "key")
        #expect(try fixture.get("key") == "two")
        #expect(try fixture.store.remove(Digest(ofKey: "key")))
        #expect(try fixture.get("key") == nil)
        #expect(try !fixture.store.remove(Digest(ofKey: "key")))
    }

    @Test func `a value stored by a clock that was ahead is a miss until that time`()
        throws
    {
        let fixture = try StoreFixture()
        let now = Timestamp.now
        let (key, value) = (Digest(ofKey: "key"), Array("value".utf8))
        var record = fixture.record("value", created: now + .seconds(3600))
        record.expires = now + .seconds(4200)
        record.staleFor = .seconds(100_000)
        for expires in [record.expires, nil] {
            record.expires = expires
            try fixture.store.put(value.span, for: key, record)
            let other = try StoreFixture.open(fixture.path)
            for store in [fixture.store, other] {
                // The second read finds the record in the table.
                for _ in 0..<2 {
                    #expect(try store.get(key, now: now + .seconds(3600), allowingStale: false) != nil)
                    #expect(try store.get(key, now: now, allowingStale: true) == nil)
                    #expect(try store.liveEntry(key, now: now, allowingStale: true) == nil)
                    #expect(try store.observe(key, now: now).value == nil)
                }
            }
            try fixture.sweep(now: now) { $0.limits.maximumIdleTime = .seconds(1) }
            #expect(fixture.entries.count == 1, "the clock may be wrong only now")
        }
        #expect(
            try fixture.store.get(key, now: now + .seconds(3541), allowingStale: false) != nil,
            "a minute early"
        )
        record.details.isNothing = true
        try fixture.store.put(value.span, for: key, record)
        #expect(try fixture.store.nothing(for: key, now: now) == nil)
        #expect(try fixture.store.nothing(for: key, now: now + .seconds(3600)) != nil)
        // Another value replaces it at once.
        try fixture.put("new", "key")
        #expect(try fixture.get("key") == "new")
    }

    @Test func `a touch reads the clock after it has locked the stripe`() throws {
        let fixture = try StoreFixture()
        let now = Timestamp.now
        let (key, value) = (Digest(ofKey: "key"), Array("value".utf8))
        var record = fixture.record("value", created: now)
        record.expires = now + .seconds(10)
        record.idleLifetime = .seconds(10)
        try fixture.store.put(value.span, for: key, record)
        let other = try StoreFixture.open(fixture.path)
        let stripe = StoreLayout.lockName(.entries, key.stripe)
        let isTouched = try fixture.store.touch(key) {
            // The wait for an exclusive holder comes before this.
            let isFree = (try? other.directory.lock(stripe, patience: .zero)?.release()) != nil
            #expect(!isFree)
            return now + .seconds(11)
        }
        #expect(!isTouched)
        #expect(try fixture.store.touch(key) { now + .seconds(9) })
    }

    @Test func `values stored by a clock that was ahead are evicted first`() throws {
        let fixture = try StoreFixture()
        let now = Timestamp.now
        for (index, key) in ["a", "b", "c"].enumerated() {
            let created = key == "b" ? now + .seconds(3600) : now - .seconds(100 * index + 100)
            var record = fixture.record(key, created: created)
            record.key = key
            try fixture.store.put(Array(key.utf8).span, for: Digest(ofKey: key), record)
        }
        try fixture.sweep(now: now) { $0.limits.maximumEntries = 2 }
        #expect(try fixture.get("a", now: now) == "a" && fixture.get("c", now: now) == "c")
    }

    @Test(arguments: RecordForm.both)
    func `a vacated key is a miss, and its generation is current until the next write`(
        form: RecordForm
    ) throws {
        let fixture = try StoreFixture(form)
        let (store, key) = (fixture.store, Digest(ofKey: "key"))
        for expires in [nil, Timestamp.now - .seconds(1)] {
            try fixture.put("value", "key", expires: expires)
            let before = try #require(store.generation(of: key))
            let generation = try #require(try store.vacate(key))
            #expect(try fixture.get("key") == nil)
            #expect(!FileManager.default.fileExists(atPath: fixture.entryPath("key")))
            #expect(store.isCurrent(before) == false)
            #expect(store.isCurrent(generation) == true)
        }
        let absent = try #require(try store.vacate(key))
        #expect(store.counters[.removal] == 2)
        try fixture.put("value", "key")
        #expect(store.isCurrent(absent) == false)
    }

    @Test func `vacating a key that another process is writing returns no generation`() throws {
        let fixture = try StoreFixture()
        let (store, key) = (fixture.store, Digest(ofKey: "key"))
        let writing = try store.control.beginChange(of: key)
        #expect(try store.vacate(key) == nil)
        writing.end()
        #expect(try store.vacate(key) != nil)
    }

    @Test func `objects are named by content, entries by key, and equal bytes are stored once`()
        throws
    {
        let fixture = try StoreFixture()
        try fixture.put("value", "a")
        try fixture.put("value", "b")
        #expect(fixture.objects.count == 1)
        #expect(FileManager.default.contents(atPath: fixture.objectPath("value")) == Data("value".utf8))
        let mode = try FileManager.default.attributesOfItem(atPath: fixture.objectPath("value"))
        #expect(mode[.posixPermissions] as? Int == 0o400)
        #expect(FileManager.default.fileExists(atPath: fixture.entryPath("a")))
        #expect(fixture.entries.count == 2)
        #expect(fixture.temporaries.isEmpty)
    }

    @Test func `both record forms are read, and the later record counts`() throws {
        let fixture = try StoreFixture(.attribute)
        let sidecars = try StoreFixture.open(fixture.path, .sidecar)
        let key = Digest(ofKey: "key")
        func putSidecar(_ value: String) throws {
            try sidecars.put(Array(value.utf8).span, for: key, fixture.record(value))
        }
        try fixture.put("1 attribute", "key")
        try putSidecar("2 sidecar")
        #expect(try fixture.get("key") == "2 sidecar")
        // Now the inode has both forms.
        try fixture.put("3 attribute", "key")
        #expect(try fixture.get("key") == "3 attribute")
        let hit = try sidecars.get(key, now: .now, allowingStale: false)
        #expect(hit?.value == Data("3 attribute".utf8))
        try putSidecar("4 sidecar")
        #expect(try fixture.get("key") == "4 sidecar")
    }

    @Test func `a record too large for an attribute moves to a sidecar and back`() throws {
        let fixture = try StoreFixture()
        let key = Digest(ofKey: "key")
        var record = fixture.record("value")
        record.details.metadata = ["long": String(repeating: "x", count: 60_000)]
        try fixture.store.put(Array("value".utf8).span, for: key, record)
        let read = try fixture.store.get(key, now: .now, allowingStale: false)
        #expect(read?.record.details == record.details)
        try fixture.put("small", "key")
        #expect(try fixture.get("key") == "small")
    }

    @Test func `a record beyond 64 KiB is refused and the old value stays`() throws {
        let fixture = try StoreFixture()
        try fixture.put("old", "key")
        var record = fixture.record("new")
        record.details.metadata = ["long": String(repeating: "x", count: 66_000)]
        #expect { try fixture.store.put(Array("new".utf8).span, for: Digest(ofKey: "key"), record) } throws: {
            ($0 as? CacheError)?.code == .invalidArgument
        }
        #expect(try fixture.get("key") == "old")
        #expect(fixture.objects.count == 1)
    }

    @Test(arguments: RecordForm.both)
    func `an entry is a miss from the instant of its expiration`(form: RecordForm) throws {
        let fixture = try StoreFixture(form)
        let expiry = Timestamp(nanoseconds: Timestamp.now.nanoseconds / 1_000_000 * 1_000_000) + .seconds(5)
        try fixture.put("value", "key", expires: expiry)
        #expect(try fixture.get("key", now: expiry - .nanoseconds(1)) == "value")
        #expect(try fixture.get("key", now: expiry) == nil)
    }

    @Test func `an access extends a sliding expiration`() throws {
        let fixture = try StoreFixture(granularity: .seconds(3600))
        let start = Timestamp.now.wholeMilliseconds
        var record = fixture.record("value", created: start)
        record.expires = start + .seconds(16)
        record.idleLifetime = .seconds(16)
        let key = Digest(ofKey: "key")
        try fixture.store.put(Array("value".utf8).span, for: key, record)
        // Each access extends the lifetime, as accesses are recorded once per sixteenth of it.
        for second in stride(from: 10, through: 100, by: 10) {
            #expect(try fixture.get("key", now: start + .seconds(second)) == "value", "at \(second)")
        }
        #expect(try fixture.get("key", now: start + .seconds(117)) == nil)
    }

    @Test func `a damaged object is a miss, is counted, and is deleted`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.damage(fixture.objectPath("value"), Array("valuE".utf8))
        #expect(try fixture.get("key") == nil)
        #expect(fixture.store.counters[.corruptObject] == 1)
        #expect(fixture.objects.isEmpty)
        #expect(fixture.entries.isEmpty)
        try fixture.put("value", "key")
        #expect(try fixture.get("key") == "value")
    }

    @Test func `an object of the wrong length is a miss, and the next put replaces it`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.damage(fixture.objectPath("value"), Array("longer than that".utf8))
        try fixture.put("value", "other")
        #expect(try fixture.get("other") == "value")
        #expect(try fixture.get("key") == "value")
        #expect(fixture.temporaries.isEmpty)
    }

    @Test func `a damaged record does not take the sound object of other keys with it`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.put("value", "other")
        try fixture.changeRecord(of: "key") { $0[35] ^= 1 }
        #expect(try fixture.get("key") == nil)
        #expect(!FileManager.default.fileExists(atPath: fixture.entryPath("key")))
        #expect(try fixture.get("other") == "value")
    }

    @Test func `an entry copied to another key's place is a miss`() throws {
        let fixture = try StoreFixture(.sidecar)
        try fixture.put("value", "key")
        try fixture.put("secret", "other")
        try FileManager.default.removeItem(atPath: fixture.entryPath("key"))
        try FileManager.default.copyItem(atPath: fixture.entryPath("other"), toPath: fixture.entryPath("key"))
        #expect(try fixture.get("key") == nil)
        #expect(try fixture.get("other") == "secret")
    }

    @Test func `an entry whose object is gone is a miss and counted as dangling`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try FileManager.default.removeItem(atPath: fixture.objectPath("value"))
        #expect(try fixture.get("key") == nil)
        #expect(fixture.store.counters[.dangling] == 1)
    }

    @Test func `a put replaces a link in place of an entry and leaves its target alone`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        let target = fixture.directory.path + "/target"
        makeFile(target, "mine")
        try FileManager.default.removeItem(atPath: fixture.entryPath("key"))
        #expect(symlink(target, fixture.entryPath("key")) == 0)
        #expect(try fixture.get("key") == nil)
        try fixture.put("new", "key")
        #expect(try fixture.get("key") == "new")
        #expect(FileManager.default.contents(atPath: target) == Data("mine".utf8))
    }

    @Test func `a read returns the new value if the old one is replaced and swept during the read`() throws {
        let fixture = try StoreFixture()
        try fixture.put("old", "key")
        var values: [String] = []
        let hit = try fixture.store.find(Digest(ofKey: "key"), .now, false) {
            (content) throws(CacheError) -> Lookup<Data> in
            if values.isEmpty {
                values.append("swept")
                try? fixture.put("new", "key")
                _ = try? fixture.sweep()
            }
            return try fixture.store.objects.read(content)
        }
        #expect(hit?.value == Data("new".utf8))
        #expect(fixture.store.counters[.dangling] == 0)
    }

    @Test func `an invalid record is a miss`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try FileManager.default.removeItem(atPath: fixture.entryPath("key"))
        for make in [
            { makeFile(fixture.entryPath("key")) },
            { makeFile(fixture.entryPath("key"), "abc") },
            {
                try FileManager.default.createSymbolicLink(
                    atPath: fixture.entryPath("key"),
                    withDestinationPath: "/etc/hostname"
                )
            },
            {
                try FileManager.default.createDirectory(
                    atPath: fixture.entryPath("key"),
                    withIntermediateDirectories: false
                )
            },
        ] as [() throws -> Void] {
            try make()
            #expect(try fixture.get("key") == nil)
            try FileManager.default.removeItem(atPath: fixture.entryPath("key"))
        }
    }

    @Test func `a conditional put succeeds only if the observed record is unchanged`() throws {
        let fixture = try StoreFixture()
        let key = Digest(ofKey: "key")
        let bytes = Array("new".utf8)
        #expect(try fixture.store.put(bytes.span, for: key, fixture.record("new"), ifStill: nil).isWritten)
        #expect(try !fixture.store.put(bytes.span, for: key, fixture.record("new"), ifStill: nil).isWritten)
        let seen = try fixture.store.observe(key, now: .now)
        #expect(seen.value == Data(bytes))
        try fixture.put("other", "key")
        #expect(
            try !fixture.store.put(bytes.span, for: key, fixture.record("new"), ifStill: seen.stored)
                .isWritten
        )
        #expect(try fixture.get("key") == "other")
    }

    @Test func `a rewrite keeps the value, and fails if its object is gone`() throws {
        let fixture = try StoreFixture()
        let key = Digest(ofKey: "key")
        try fixture.put("value", "key")
        let live = try #require(try fixture.store.liveEntry(key, now: .now, allowingStale: false))
        var record = live.record
        record.expires = .now + .seconds(100)
        #expect(try fixture.store.rewrite(record, for: key, ifStill: live.stored, now: .now).isWritten)
        #expect(try fixture.store.rewrite(record, for: key, ifStill: live.stored, now: .now) == .conflict)
        #expect(try fixture.get("key") == "value")
        let again = try #require(try fixture.store.liveEntry(key, now: .now, allowingStale: false))
        try FileManager.default.removeItem(atPath: fixture.objectPath("value"))
        #expect(
            try fixture.store.rewrite(record, for: key, ifStill: again.stored, now: .now) == .objectMissing
        )
    }

    @Test func `a reader does not remove an entry whose object a put has just recreated`() throws {
        let fixture = try StoreFixture()
        let key = Digest(ofKey: "key")
        let record = fixture.record("value")
        try fixture.store.put(Array("value".utf8).span, for: key, record)
        let stored = try #require(try fixture.store.entries.read(key))
        // The same bytes in the same millisecond, after a reader has found the object missing or has deleted it.
        try FileManager.default.removeItem(atPath: fixture.objectPath("value"))
        try fixture.store.put(Array("value".utf8).span, for: key, record)
        #expect(try fixture.store.entries.read(key)?.bytes == stored.bytes)
        fixture.store.forget(key, stored, unlessPresent: record.content)
        #expect(try fixture.get("key") == "value")
    }

    @Test func `a removal concurrent with puts reports each value that it removes`() throws {
        let fixture = try StoreFixture()
        let key = Digest(ofKey: "key")
        let expired = {
            var record = fixture.record("value", created: .now - .seconds(100))
            record.expires = .now - .seconds(50)
            return record
        }()
        for _ in 0..<300 {
            try fixture.store.put(Array("value".utf8).span, for: key, expired)
            let removed = Locked<Bool?>.Box(nil)
            onThreads(2) { index in
                if index == 0 {
                    try? fixture.put("value", "key")
                } else {
                    let answer = try? fixture.store.remove(key)
                    removed.value.withLock { $0 = answer }
                }
            }
            // In either order a fresh value is still present or was reported as removed.
            let isThere = try fixture.get("key") != nil
            #expect(removed.value.withLock { $0 } == !isThere)
        }
    }

    @Test func `an access is recorded once per granularity`() throws {
        let fixture = try StoreFixture(granularity: .seconds(100))
        let start = (Timestamp.now - .seconds(10)).wholeMilliseconds
        let key = Digest(ofKey: "key")
        try fixture.store.put(Array("v".utf8).span, for: key, fixture.record("v", created: start))
        func accessed() throws -> Timestamp? {
            try fixture.store.directory.status(of: key, .entries)?.accessed
        }
        let created = try accessed()
        #expect(created == start)
        #expect(try fixture.get("key", now: start + .seconds(99)) == "v")
        #expect(try accessed() == created)
        #expect(try fixture.get("key", now: start + .seconds(101)) == "v")
        #expect(try accessed() == start + .seconds(101))
    }

    @Test(arguments: RecordForm.both)
    func `reading a record, sweeping and verifying do not count as accesses`(form: RecordForm) throws {
        let fixture = try StoreFixture(form)
        let key = Digest(ofKey: "key")
        let created = (Timestamp.now - .seconds(10 * 86_400)).wholeMilliseconds
        try fixture.store.put(Array("v".utf8).span, for: key, fixture.record("v", created: created))
        _ = try fixture.store.entries.read(key)
        try fixture.sweep()
        _ = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(try fixture.store.directory.status(of: key, .entries)?.accessed == created)
    }

    @Test func `a value is opened as a verified file, which stays readable after a sweep`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        let key = Digest(ofKey: "key")
        guard let hit = try fixture.store.open(key, now: .now, allowingStale: false) else {
            Issue.record("a miss")
            return
        }
        // An open file stays readable after an overwrite and a sweep.
        try fixture.put("other", "key")
        try fixture.sweep()
        let bytes = try hit.value.readExactly(5)
        #expect(bytes == Data("value".utf8))
        try fixture.damage(fixture.objectPath("other"), Array("oTher".utf8))
        let isFound = try fixture.store.open(key, now: .now, allowingStale: false) != nil
        #expect(!isFound)
    }

    @Test func `concurrent puts, gets and sweeps see only whole values`() throws {
        let fixture = try StoreFixture()
        let failures = FailureCount()
        onThreads(6) { thread in
            do {
                for round in 0..<60 {
                    let value =
                        "key-\(round % 5) " + String(repeating: "\(thread)", count: 1000 * (thread + 1))
                    switch thread {
                    case 0: try fixture.sweep()
                    case 1...3: try fixture.put(value, "key-\(round % 5)")
                    default:
                        guard let read = try fixture.get("key-\(round % 5)") else { continue }
                        let body = read.dropFirst(6)
                        if !read.hasPrefix("key-\(round % 5) ") || Set(body).count != 1 {
                            failures.add("wrong bytes")
                        }
                    }
                }
            } catch {
                failures.add("\(error)")
            }
        }
        #expect(failures.all == [])
        try fixture.sweep()
        #expect(try Verification.run(on: fixture.store, isRepairing: false).isClean)
        #expect(fixture.store.counters[.dangling] == 0)
    }
}
