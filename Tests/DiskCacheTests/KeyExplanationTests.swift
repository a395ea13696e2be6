// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct KeyExplanationTests {
    private let fixture: CacheFixture

    init() throws {
        fixture = try CacheFixture()
    }

    private func state(_ key: String) throws -> KeyExplanation.State {
        try fixture.cache.directory.explanation(forKey: key).state
    }

    private func paths(_ key: String) throws -> (entry: String, object: String) {
        fixture.cache.paths(of: try #require(try fixture.cache.entry(forKey: key)))
    }

    @Test(arguments: [true, false])
    func `a value expired by a rule is a miss for every call, even if the clock is set back`(hasTag: Bool)
        throws
    {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        let options = PutOptions(expires: .days(2), tags: hasTag ? ["tag"] : [])
        try cache.put("value", forKey: "key", options: options)
        fixture.clock.advance(by: 7200)
        try cache.expireAll(hasTag ? .tagged("tag") : .all, staleFor: .seconds(86_400))
        // Records without tags are remembered.
        #expect(try fixture.text("key", allowingStale: true) == "value")
        fixture.clock.advance(by: -3600)
        #expect(try fixture.text("key") == nil && fixture.text("key", allowingStale: true) == "value")
        #expect(try cache.directory.explanation(forKey: "key").state == .stale)
        #expect(try !cache.contains(forKey: "key") && Array(cache.entries()).isEmpty)
        #expect(try cache.directory.statistics().expiredEntries == 1)
    }

    @Test func `an explanation reports each state of a key`() throws {
        let cache = fixture.cache
        for key in ["hit", "gone", "long"] { try cache.put(key, forKey: key) }
        try cache.put("value", forKey: "expired", options: PutOptions(expires: .expired))
        let stale = PutOptions(expires: .expired, staleFor: .seconds(60))
        try cache.put("value", forKey: "stale", options: stale)
        try FileManager.default.removeItem(atPath: paths("gone").object)
        let long = try paths("long").object
        try FileManager.default.removeItem(atPath: long)
        try Data("longer".utf8).write(to: URL(fileURLWithPath: long))
        #expect(try state("hit") == .hit && state("absent") == .absent)
        #expect(try state("expired") == .expired && state("stale") == .stale)
        #expect(try state("gone") == .valueGone && state("long") == .damagedValue(length: 6))
    }

    @Test func `an entry without metadata is unfinished, and one with invalid metadata is damaged`() throws {
        try fixture.cache.put("value", forKey: "key")
        let path = try paths("key").entry
        try FileManager.default.removeItem(atPath: path)
        try Data().write(to: URL(fileURLWithPath: path))
        #expect(try state("key") == .unfinished)
        try Data("garbage".utf8).write(to: URL(fileURLWithPath: path))
        #expect(try state("key") == .damagedMetadata)
    }
}
