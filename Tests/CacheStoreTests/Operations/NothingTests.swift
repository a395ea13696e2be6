// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Negative entries, which record that there is no value.
@Suite(.takesTurns) struct NothingTests {
    private let key = Digest(ofKey: "key")

    private func put(in fixture: StoreFixture, created: Timestamp, expires: Timestamp) throws {
        var record = fixture.record("", created: created)
        record.expires = expires
        record.key = "key"
        record.details.isNothing = true
        try fixture.store.put([UInt8]().span, for: key, record)
    }

    @Test(arguments: RecordForm.both)
    func `a negative entry is a counted miss for each kind of read until it expires`(form: RecordForm) throws
    {
        let fixture = try StoreFixture(form)
        let now = Timestamp.now
        try fixture.put("old", "key")
        try put(in: fixture, created: now, expires: now + .seconds(10))
        for allowingStale in [false, true] {
            #expect(try fixture.store.get(key, now: now, allowingStale: allowingStale) == nil)
            let isFound = try fixture.store.open(key, now: now, allowingStale: allowingStale) != nil
            #expect(!isFound)
            #expect(try fixture.store.liveEntry(key, now: now, allowingStale: allowingStale) == nil)
        }
        #expect(fixture.store.counters[.negativeHit] == 4 && fixture.store.counters[.miss] == 4)
        #expect(try fixture.store.observePresence(of: key, now: now).isPresent == false)
        #expect(try fixture.store.nothing(for: key, now: now) == now.wholeMilliseconds)
        #expect(try fixture.store.nothing(for: key, now: now + .seconds(10)) == nil)
        #expect(try fixture.store.nothing(for: Digest(ofKey: "other"), now: now) == nil)
        try fixture.put("new", "key")
        #expect(try fixture.store.nothing(for: key, now: now) == nil)
        #expect(try fixture.get("key") == "new")
    }

    @Test func `removing a negative entry reports no removal and leaves no entry`() throws {
        let fixture = try StoreFixture()
        try put(in: fixture, created: .now, expires: .now + .seconds(10))
        #expect(try fixture.store.remove(key) == false)
        #expect(fixture.entries.isEmpty)
    }

    @Test func `a collection removes an expired negative entry`() throws {
        let fixture = try StoreFixture()
        let now = Timestamp.now
        try put(in: fixture, created: now, expires: now + .seconds(10))
        try fixture.sweep(now: now)
        #expect(fixture.entries.count == 1 && fixture.objects.count == 1)
        try fixture.sweep(now: now + .seconds(10))
        #expect(fixture.entries.isEmpty)
    }

    @Test func `only an optional item, which older versions skip, marks a negative entry`() throws {
        var record = Record(content: Content(of: [UInt8]().span), created: .now)
        record.details.isNothing = true
        let bytes = record.encoded(for: key)
        // Version 1: the flag "details", a length of 2, kind 7 and a length of 0.
        #expect(bytes[1] == 0x20 && bytes.suffix(3) == [2, 7, 0])
        let read = try #require(Record(decoding: bytes, for: key))
        #expect(read == record && read.isNothing)
        record.details.isNothing = false
        #expect(!record.hasDetails && !record.isNothing)
    }
}
