// SPDX-License-Identifier: Apache-2.0

import Platform

/// The access times of entries that this process has seen recently, so that a hit need not check them again.
///
/// The notes are a table of fixed size in which each digest has one place. If two digests share a place, the later one
/// replaces the other, which costs one more check of that entry's file. This type does not access files.
struct AccessNotes: Sendable {
    /// The number of places, of 16 bytes each.
    ///
    /// 64 KiB hold the entries that a process uses often. More places hardly help, as a check (`fstatat`) costs 1 to 2 µs.
    static let capacity = 4096

    private struct Note {
        var fingerprint: UInt64 = 0
        var accessed = Timestamp.distantPast
    }

    private var notes: [Note] = []

    /// Returns the entry's access time, if it is known to be after `start` and less than `granularity` old.
    ///
    /// - Parameter granularity: In nanoseconds, as everywhere here: arithmetic on `Duration` would take longer than all the
    ///   rest.
    func recent(_ key: Digest, now: Timestamp, granularity: Int64, after start: Timestamp) -> Timestamp? {
        guard !notes.isEmpty else { return nil }
        let note = notes[Self.place(of: key)]
        guard note.fingerprint == key.word(0), note.accessed.nanoseconds > start.nanoseconds,
            Self.isRecent(note.accessed, now: now, granularity: granularity)
        else { return nil }
        return note.accessed
    }

    /// Remembers an entry's access time on disk.
    mutating func note(_ key: Digest, accessed: Timestamp) {
        if notes.isEmpty { notes = Array(repeating: Note(), count: Self.capacity) }
        notes[Self.place(of: key)] = Note(fingerprint: key.word(0), accessed: accessed)
    }

    /// Returns whether an access time is recent enough.
    ///
    /// A time in the future is not recent: a clock was set back.
    static func isRecent(_ accessed: Timestamp, now: Timestamp, granularity: Int64) -> Bool {
        // The age of an access far in the past does not fit 64 bits, and that access is not recent.
        let (age, isOverflow) = now.nanoseconds.subtractingReportingOverflow(accessed.nanoseconds)
        return !isOverflow && age >= 0 && age < granularity
    }

    private static func place(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(1)) & (capacity - 1)
    }
}
