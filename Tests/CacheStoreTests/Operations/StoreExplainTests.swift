// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct StoreExplainTests {
    private let fixture: StoreFixture
    private let now = Timestamp.now

    init() throws {
        fixture = try StoreFixture()
    }

    private func explain(_ key: String) throws -> EntryExplanation? {
        try fixture.store.explain(Digest(ofKey: key), now: now)
    }

    @Test func `an explanation shows the record and object that a get would find`() throws {
        let (past, future) = (now - .seconds(10), now + .seconds(3600))
        try fixture.put("v", "hit", expires: future)
        var expired = fixture.record("v", created: now - .seconds(100))
        expired.expires = past
        try fixture.store.put(Array("v".utf8).span, for: Digest(ofKey: "expired"), expired)
        try fixture.put("v gone", "gone")
        try fixture.put("v long", "long")
        for key in ["damaged", "unfinished"] { try fixture.put("v", key) }
        var stale = fixture.record("v", created: now - .seconds(100))
        stale.expires = past
        stale.staleFor = future - past
        try fixture.store.put(Array("v".utf8).span, for: Digest(ofKey: "stale"), stale)
        try FileManager.default.removeItem(atPath: fixture.objectPath("v gone"))
        try fixture.damage(fixture.objectPath("v long"), Array("v longer".utf8))
        try fixture.changeRecord(of: "damaged") { $0 = Array("garbage".utf8) }
        try fixture.changeRecord(of: "unfinished") { $0 = [] }
        // Whether the record can be read, and the length of the object if that matters.
        let found: [(String, Bool, Int64?)] = [
            ("hit", true, 1), ("expired", true, nil), ("gone", true, nil), ("long", true, 8),
            ("damaged", false, nil), ("unfinished", false, nil), ("stale", true, 1),
        ]
        for (key, hasRecord, length) in found {
            let explanation = try #require(try explain(key))
            #expect((explanation.stored.record != nil) == hasRecord, "\(key)")
            #expect(explanation.objectLength == length, "\(key)")
            // It must agree with a get, which comes last, as it repairs.
            let isHit = try fixture.store.get(Digest(ofKey: key), now: now, allowingStale: false) != nil
            #expect(isHit == (key == "hit"), "\(key)")
        }
        #expect(try explain("other") == nil)
        let staleHit = try fixture.store.get(Digest(ofKey: "stale"), now: now, allowingStale: true)
        #expect(staleHit?.entry.isStale == true)
    }

    @Test func `a stale entry without its object is explained without an object length`() throws {
        var stale = fixture.record("v", created: now - .seconds(100))
        stale.expires = now - .seconds(10)
        stale.staleFor = .seconds(20)
        try fixture.store.put(Array("v".utf8).span, for: Digest(ofKey: "stale"), stale)
        try FileManager.default.removeItem(atPath: fixture.objectPath("v"))
        let explanation = try #require(try explain("stale"))
        #expect(explanation.stored.record != nil && explanation.objectLength == nil)
    }

    @Test func `an explanation does not count as an access`() throws {
        try fixture.put("v", "key")
        let before = try #require(try fixture.store.directory.status(of: Digest(ofKey: "key"), .entries))
        _ = try explain("key")
        #expect(try fixture.store.directory.status(of: Digest(ofKey: "key"), .entries) == before)
    }
}
