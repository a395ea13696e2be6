// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// The table of records that a store has read.
///
/// Two stores on one directory behave like two processes.
@Suite(.takesTurns) struct RecordCacheTests {
    let fixture: StoreFixture
    let other: Store
    let key = Digest(ofKey: "key")

    init() throws {
        fixture = try StoreFixture(granularity: .seconds(100))
        other = try StoreFixture.open(fixture.path)
    }

    private func putByOther(_ value: String) throws {
        try other.put(Array(value.utf8).span, for: key, fixture.record(value))
    }

    private func known() throws -> CachedRecord? {
        let generation = try #require(fixture.store.generation(of: key))
        return fixture.store.records.record(of: key, at: generation)
    }

    private func isKnownAbsent() throws -> Bool {
        let generation = try #require(fixture.store.generation(of: key))
        guard case .absence = fixture.store.records.knowledge(of: key, at: generation) else {
            return false
        }
        return true
    }

    /// Creates the entry of `key` without raising its generation, which no writer may do.
    private func publishByHand(_ value: String) throws {
        try fixture.put(value, "else")
        let record = fixture.record(value).encoded(for: key)
        let path = URL(fileURLWithPath: fixture.entryPath("key"))
        try FileManager.default.createDirectory(
            at: path.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try Data().write(to: path)
        try fixture.store.directory.entries.setAttribute(
            "user.dc",
            of: StoreLayout.path(of: key),
            to: record.span
        )
    }

    @Test func `a key without an entry is not looked up again until it is written`()
        throws
    {
        try fixture.put("one", "key")
        let isRemoved = try other.remove(key)
        #expect(isRemoved)
        #expect(try fixture.get("key") == nil)
        #expect(try isKnownAbsent())
        // A change by hand shows that the entry is not read.
        try publishByHand("two")
        #expect(try fixture.get("key") == nil)
        #expect(fixture.store.counters[.miss] == 2)
        try putByOther("another")
        #expect(try !isKnownAbsent())
        #expect(try fixture.get("key") == "another")
    }

    @Test func `during a write of a key its absence is neither known nor recorded`() throws {
        try fixture.put("one", "key")
        _ = try fixture.store.remove(key)
        #expect(try fixture.get("key") == nil)
        let writing = try other.control.beginChange(of: key)
        try publishByHand("two")
        #expect(try fixture.get("key") == "two")
        try FileManager.default.removeItem(atPath: fixture.entryPath("key"))
        #expect(try fixture.get("key") == nil)
        try publishByHand("two")
        #expect(try fixture.get("key") == "two")
        writing.end()
        #expect(try fixture.get("key") == "two")
    }

    @Test func `an absence kept with a generation from before a put is not used`() throws {
        // The writer ends between the read of the generation and the lookup of the entry. With a generation that
        // is read afterwards, the absence seen before would count forever.
        try fixture.put("one", "key")
        _ = try fixture.store.remove(key)
        let before = try #require(fixture.store.generation(of: key))
        try putByOther("two")
        fixture.store.records.keep(CachedRecord(absenceOf: key), at: before)
        #expect(try fixture.get("key") == "two")
    }

    @Test func `knowledge of one mapping is not valid for another`() throws {
        let table = RecordCache()
        let (first, second) = (
            Generation(index: 1, word: 1 << 16, mapping: 4096),
            Generation(index: 1, word: 1 << 16, mapping: 8192)
        )
        table.keep(CachedRecord(absenceOf: key), at: first)
        #expect(table.knowledge(of: key, at: first) != nil)
        #expect(table.knowledge(of: key, at: second) == nil)
        let known = try #require(CachedRecord(fixture.record("one"), of: key, accessed: .now))
        table.keep(known, at: second)
        #expect(table.record(of: key, at: second)?.record == known.record)
        #expect(table.knowledge(of: key, at: first) == nil)
    }

    @Test func `an absence replaces no record`() throws {
        let table = RecordCache()
        let generation = Generation(index: 1, word: 1 << 16)
        let content = Content(digest: key, length: 1, checksum: 2)
        let record = Record(content: content, created: .now)
        let keys = (0..<60_000).map { Digest(ofKey: "key \($0)") }
        for key in keys {
            table.keep(try #require(CachedRecord(record, of: key, accessed: .now)), at: generation)
        }
        let count = keys.count { table.record(of: $0, at: generation) != nil }
        for number in 0..<60_000 {
            table.keep(CachedRecord(absenceOf: Digest(ofKey: "absent \(number)")), at: generation)
        }
        #expect(keys.count { table.record(of: $0, at: generation) != nil } == count)
    }

    @Test func `a record that was read is known until the key is written`() throws {
        try fixture.put("one", "key")
        #expect(try known() == nil)
        #expect(try fixture.get("key") == "one")
        #expect(try known()?.record.content.length == 3)
        // A change of the entry by hand shows that it is not read.
        try FileManager.default.removeItem(atPath: fixture.entryPath("key"))
        #expect(try fixture.get("key") == "one")
        try putByOther("another")
        #expect(try known() == nil)
        #expect(try fixture.get("key") == "another")
        let isRemoved = try other.remove(key)
        #expect(isRemoved)
        #expect(try fixture.get("key") == nil)
    }

    @Test func `during a write no record is known or recorded`() throws {
        try fixture.put("one", "key")
        #expect(try fixture.get("key") == "one")
        let writing = try other.control.beginChange(of: key)
        #expect(try fixture.get("key") == "one")
        try FileManager.default.removeItem(atPath: fixture.entryPath("key"))
        #expect(try fixture.get("key") == nil)
        writing.end()
        #expect(try fixture.get("key") == nil)
    }

    @Test func `without a control file no record is known`() throws {
        let remote = Capabilities(attributes: .writable, unnamedFiles: true, sharedMapping: .none)
        let fixture = try StoreFixture(assuming: remote)
        try fixture.put("one", "key")
        #expect(try fixture.get("key") == "one")
        try FileManager.default.removeItem(atPath: fixture.entryPath("key"))
        #expect(try fixture.get("key") == nil)
    }

    @Test func `an evicted value is a miss although its record is known`() throws {
        try fixture.put("one", "key")
        #expect(try fixture.get("key") == "one")
        try fixture.sweep { $0.limits.maximumEntries = 0 }
        #expect(try known() != nil)
        #expect(try fixture.get("key") == nil)
        #expect(try known() == nil)
        #expect(fixture.store.counters[.dangling] == 0)
    }

    @Test func `a known record is read again if its object is gone`() throws {
        try fixture.put("one", "key")
        #expect(try fixture.get("key") == "one")
        // A sweep evicts both, which raises no generation, and the generation read here does not yet show a
        // process that was killed after it published "two".
        try FileManager.default.removeItem(atPath: fixture.objectPath("one"))
        let record = fixture.record("two").encoded(for: key)
        try fixture.put("two", "else")
        let path = StoreLayout.path(of: key)
        try fixture.store.directory.entries.setAttribute("user.dc", of: path, to: record.span)
        #expect(try fixture.get("key") == "two")
    }

    @Test func `expiration is checked at each use`() throws {
        let expires = Timestamp.now.wholeMilliseconds + .seconds(50)
        try fixture.put("one", "key", expires: expires)
        #expect(try fixture.get("key") == "one")
        #expect(try known() != nil)
        #expect(try fixture.get("key", now: expires + .nanoseconds(-1)) == "one")
        #expect(try fixture.get("key", now: expires) == nil)
    }

    @Test func `a known record is returned with all relevant fields`() throws {
        var record = fixture.record("one")
        record.expires = (Timestamp.now + .seconds(50)).wholeMilliseconds
        record.staleFor = .seconds(7)
        record.cost = .milliseconds(64)
        try fixture.store.put(Array("one".utf8).span, for: key, record)
        let first = try #require(try fixture.store.get(key, now: .now, allowingStale: false))
        let second = try #require(try fixture.store.get(key, now: .now, allowingStale: false))
        #expect(first.entry.stored != nil)
        #expect(second.entry.stored == nil, "its entry was not read")
        #expect(second.record == first.record)
        #expect(second.entry.generation == first.entry.generation)
        #expect(second.heldUntil == record.expires)
    }

    @Test func `sliding records and records with details are read each time`() throws {
        var sliding = fixture.record("one")
        sliding.expires = .now + .seconds(50)
        sliding.idleLifetime = .seconds(50)
        try fixture.store.put(Array("one".utf8).span, for: key, sliding)
        #expect(try fixture.get("key") == "one")
        #expect(try known() == nil)
        var detailed = fixture.record("one")
        detailed.details.tags = ["tag"]
        try fixture.store.put(Array("one".utf8).span, for: key, detailed)
        #expect(try fixture.get("key") == "one")
        #expect(try known() == nil)
    }

    @Test func `damage is detected, and the damaged object and entry are removed`() throws {
        try fixture.put("one", "key")
        #expect(try fixture.get("key") == "one")
        try fixture.damage(fixture.objectPath("one"), Array("two".utf8))
        #expect(try fixture.get("key") == nil)
        #expect(fixture.store.counters[.corruptObject] == 1)
        #expect(fixture.objects.isEmpty && fixture.entries.isEmpty)
        #expect(try known() == nil)
    }

    @Test func `a due access is recorded once`() throws {
        try fixture.put("one", "key")
        #expect(try fixture.get("key") == "one")
        let due = Timestamp.now + .seconds(200)
        #expect(try fixture.get("key", now: due) == "one")
        #expect(try fixture.store.directory.status(of: key, .entries)?.accessed == due)
        #expect(try fixture.get("key", now: due + .seconds(50)) == "one")
        #expect(try fixture.store.directory.status(of: key, .entries)?.accessed == due)
    }

    @Test func `an access right after the write is not recorded, a later one is`() throws {
        let created = Timestamp.now.wholeMilliseconds
        try fixture.put("one", "key")
        let long = created + .seconds(-5000)
        try fixture.store.directory.entries.setAccessTime(of: StoreLayout.path(of: key), to: long)
        // It still counts as used recently, as it was created then.
        #expect(try fixture.get("key", now: created + .seconds(90)) == "one")
        #expect(try fixture.store.directory.status(of: key, .entries)?.accessed == long)
        let due = created + .seconds(150)
        #expect(try fixture.get("key", now: due) == "one")
        #expect(try fixture.store.directory.status(of: key, .entries)?.accessed == due)
    }

    @Test func `a full table keeps part of the records, each of them intact`() throws {
        let table = RecordCache()
        let generation = Generation(index: 1, word: 1 << 16)
        var keys: [Digest] = []
        for number in 0..<40_000 {
            let key = Digest(ofKey: "key \(number)")
            keys.append(key)
            let content = Content(digest: key, length: number, checksum: UInt32(number))
            let record = Record(content: content, created: .now)
            table.keep(try #require(CachedRecord(record, of: key, accessed: .now)), at: generation)
        }
        var count = 0
        for (number, key) in keys.enumerated() {
            guard let known = table.record(of: key, at: generation) else { continue }
            count += 1
            try #require(known.record.content.length == number && known.record.content.digest == key)
            try #require(table.record(of: key, at: Generation(index: 1, word: 2 << 16)) == nil)
        }
        #expect(count > 25_000 && count <= 32_768)
        table.drop(keys[39_999])
        #expect(table.record(of: keys[39_999], at: generation) == nil)
    }
}

extension RecordCache {
    /// Returns the known record of `key`, or nil if no record is known.
    fileprivate func record(of key: Digest, at generation: Generation) -> CachedRecord? {
        guard case .record(let known) = knowledge(of: key, at: generation) else { return nil }
        return known
    }
}
