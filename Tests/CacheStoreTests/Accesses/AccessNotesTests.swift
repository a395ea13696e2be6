// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct AccessNotesTests {
    let now = Timestamp(nanoseconds: 1_700_000_000_000_000_000)
    let key = Digest(ofKey: "key")

    @Test func `a note is valid until it is as old as the granularity`() {
        var notes = AccessNotes()
        #expect(!notes.isRecent(key, now: now, granularity: 10_000_000_000))
        notes.note(key, accessed: now)
        #expect(notes.isRecent(key, now: now + .seconds(9), granularity: 10_000_000_000))
        #expect(!notes.isRecent(key, now: now + .seconds(10), granularity: 10_000_000_000))
        #expect(!notes.isRecent(key, now: now, granularity: 0))
    }

    @Test func `a note from the future is invalid`() {
        var notes = AccessNotes()
        notes.note(key, accessed: now + .seconds(1))
        #expect(!notes.isRecent(key, now: now, granularity: 10_000_000_000))
    }

    @Test func `a note does not apply to other keys`() {
        var notes = AccessNotes()
        notes.note(key, accessed: now)
        let others = (0..<10_000).map { Digest(ofKey: "other \($0)") }
        #expect(!others.contains { notes.isRecent($0, now: now, granularity: 10_000_000_000) })
    }
}

extension AccessNotes {
    fileprivate func isRecent(_ key: Digest, now: Timestamp, granularity: Int64) -> Bool {
        recent(key, now: now, granularity: granularity, after: .distantPast) != nil
    }
}
