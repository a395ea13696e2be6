// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct AccessNotesTests {
    let now = Timestamp(nanoseconds: 1_700_000_000_000_000_000)
    let key = Digest(ofKey: "key")

    @Test func `a note is good until it is as old as the granularity`() {
        var notes = AccessNotes()
        #expect(!notes.isRecent(key, now: now, granularity: .seconds(10)))
        notes.note(key, accessed: now)
        #expect(notes.isRecent(key, now: now + .seconds(9), granularity: .seconds(10)))
        #expect(!notes.isRecent(key, now: now + .seconds(10), granularity: .seconds(10)))
        #expect(!notes.isRecent(key, now: now, granularity: .zero))
    }

    @Test func `a note from the future is not good`() {
        var notes = AccessNotes()
        notes.note(key, accessed: now + .seconds(1))
        #expect(!notes.isRecent(key, now: now, granularity: .seconds(10)))
    }

    @Test func `other keys don't profit`() {
        var notes = AccessNotes()
        notes.note(key, accessed: now)
        let others = (0..<10_000).map { Digest(ofKey: "other \($0)") }
        #expect(!others.contains { notes.isRecent($0, now: now, granularity: .seconds(10)) })
    }
}
