// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// The state that a put leaves on disk, and its guess that objects are new.
@Suite(.takesTurns) struct StoreWriteTests {
    @Test(arguments: RecordForm.both)
    func `a new entry has the file system's time, unless that counts as an access`(
        form: RecordForm
    ) throws {
        let fixture = try StoreFixture(form)
        func accessed(_ name: String, _ record: Record) throws -> Timestamp? {
            let key = Digest(ofKey: name)
            try fixture.store.put(Array("v".utf8).span, for: key, record)
            return try fixture.store.directory.status(of: key, .entries)?.accessed
        }
        let now = Timestamp.now
        var record = fixture.record("v", created: now)
        let plain = try #require(try accessed("plain", record))
        #expect(plain > now - .seconds(1) && plain < now + .seconds(60))
        let early = fixture.record("v", created: now - .seconds(100))
        #expect(try accessed("early", early) == early.created)
        let late = fixture.record("v", created: now + .seconds(100))
        #expect(try accessed("late", late) == late.created)
        record.expires = record.created + .seconds(5)
        record.idleLifetime = .seconds(5)
        #expect(try accessed("sliding", record) == record.created)
    }

    /// Returns a fixture whose store expects new objects, as many in a row were new.
    private func fixtureThatGuesses() throws -> StoreFixture {
        let fixture = try StoreFixture()
        for number in 0..<20 { try fixture.put("value \(number)", "key \(number)") }
        return fixture
    }

    @Test func `an existing object is kept and counted once although it was expected to be new`() throws {
        let fixture = try fixtureThatGuesses()
        let object = fixture.objectPath("value 3")
        let before = try FileStatus.of(object)
        // The file system's clock ticks every few milliseconds.
        var others = 0
        repeat {
            others += 1
            try fixture.put("other \(others)", "other key \(others)")
        } while try FileStatus.of(fixture.objectPath("other \(others)")).changed <= before.changed
        let used = try #require(fixture.store.control.usage).bytes
        try fixture.put("value 3", "another key")
        let after = try FileStatus.of(object)
        #expect(after.identity == before.identity && after.changed > before.changed)
        #expect(fixture.store.control.usage?.bytes == used)
        #expect(try fixture.get("another key") == "value 3")
    }

    @Test func `an existing entry is replaced and counted once although it was expected to be new`()
        throws
    {
        let fixture = try fixtureThatGuesses()
        let entries = try #require(fixture.store.control.usage).entries
        try fixture.put("other", "key 3")
        #expect(try fixture.get("key 3") == "other")
        #expect(fixture.store.control.usage?.entries == entries)
    }

    @Test func `a damaged object is replaced although it was expected to be new`() throws {
        let fixture = try fixtureThatGuesses()
        let object = fixture.objectPath("value 3")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: object)
        try #require(FileHandle(forWritingAtPath: object)).truncate(atOffset: 3)
        try fixture.put("value 3", "key 3")
        #expect(try fixture.get("key 3") == "value 3")
    }

    @Test func `new keys are expected after eight new objects in a row, until an old one`() {
        let newKeyPredictor = NewKeyPredictor()
        var guesses: [Bool] = []
        for _ in 0..<8 {
            guesses.append(newKeyPredictor.isLikely)
            newKeyPredictor.note(isNew: true)
        }
        guesses.append(newKeyPredictor.isLikely)
        newKeyPredictor.note(isNew: false)
        guesses.append(newKeyPredictor.isLikely)
        #expect(guesses == Array(repeating: false, count: 8) + [true, false])
    }
}
