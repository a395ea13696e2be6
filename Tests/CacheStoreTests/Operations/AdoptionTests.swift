// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Values from other machines.
@Suite(.takesTurns) struct AdoptionTests {
    let fixture: StoreFixture
    private let key = Digest(ofKey: "key")
    private let bytes = Array("theirs".utf8)

    init() throws {
        fixture = try StoreFixture()
    }

    private func adopt(since absence: Store.Absence, created: Timestamp = .now) throws -> WriteResult {
        let record = fixture.record("theirs", created: created)
        return try fixture.store.adopt(bytes.span, for: key, record, since: absence, now: .now, SpaceWait())
    }

    @Test func `an adopted value can be read and held`() throws {
        let absence = try #require(try fixture.store.absence(of: key, now: .now))
        #expect(try adopt(since: absence).generation != nil)
        #expect(try fixture.get("key") == "theirs")
    }

    @Test func `a removal in between wins, even if it removes nothing`() throws {
        let absence = try #require(try fixture.store.absence(of: key, now: .now))
        _ = try fixture.store.remove(key, now: .now)
        #expect(try adopt(since: absence) == .conflict)
        #expect(try fixture.get("key") == nil)
        #expect(!fixture.store.isCurrent(absence))
    }

    @Test func `a removal rule in between wins`() throws {
        let absence = try #require(try fixture.store.absence(of: key, now: .now))
        #expect(fixture.store.enact(.remove, .all, now: .now))
        #expect(try adopt(since: absence) == .conflict)
        #expect(try fixture.get("key") == nil)
    }

    @Test func `a put in between wins`() throws {
        let absence = try #require(try fixture.store.absence(of: key, now: .now))
        try fixture.put("ours", "key")
        #expect(try adopt(since: absence) == .conflict)
        #expect(try fixture.get("key") == "ours")
    }

    @Test func `remote servers are not asked for a present key or a negative entry`() throws {
        try fixture.put("ours", "key")
        #expect(try fixture.store.absence(of: key, now: .now) == nil)
        var record = fixture.record("")
        record.expires = .now + .seconds(100)
        record.details.isNothing = true
        try fixture.store.put([UInt8]().span, for: key, record)
        #expect(try fixture.store.absence(of: key, now: .now) == nil)
    }

    @Test func `an adopted value replaces an expired one`() throws {
        let now = Timestamp.now
        try fixture.put("ours", "key", expires: now)
        let absence = try #require(try fixture.store.absence(of: key, now: now + .seconds(1)))
        #expect(try adopt(since: absence).isWritten)
        #expect(try fixture.get("key") == "theirs")
    }

    @Test func `an adopted value is not sent to other machines again`() throws {
        fixture.store.noteChanges(true)
        let absence = try #require(try fixture.store.absence(of: key, now: .now))
        #expect(try adopt(since: absence).isWritten)
        #expect(try fixture.store.outbox.mark()?.size == 0)
    }

    @Test func `an old value counts as used now`() throws {
        let absence = try #require(try fixture.store.absence(of: key, now: .now))
        let before = Timestamp.now
        #expect(try adopt(since: absence, created: .now + .seconds(-3600)).isWritten)
        let status = try #require(try fixture.store.directory.status(of: key, .entries))
        #expect(status.accessed + .seconds(60) > before)
    }

    @Test func `a record is sent without its key and arrives with its terms`() throws {
        var record = fixture.record("theirs", created: .now + .seconds(100))
        record.key = "key"
        record.staleFor = .seconds(7)
        record.details.tags = ["tag"]
        record.details.followedRule = 3
        let sent = record.forOthers
        #expect(sent.key == nil && sent.details.followedRule == nil && sent.details.tags == ["tag"])
        let now = Timestamp.now
        let came = sent.arrived(at: now, content: record.content, key: "key")
        #expect(came.created <= now, "clocks differ")
        #expect(came.key == "key" && came.staleFor == .seconds(7) && came.details.tags == ["tag"])
    }
}
