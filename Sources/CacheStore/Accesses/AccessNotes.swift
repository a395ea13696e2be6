// SPDX-License-Identifier: Apache-2.0

import Platform

/// Which entries' access times this process has seen lately, so that a hit need not look again.
///
/// A table of fixed size in which a digest has one place; where two share it, the later one wins and the
/// other costs one more look at its file. Policy only: it knows no files.
struct AccessNotes: Sendable {
    /// Places, of 16 bytes each: 64 KiB hold what a process uses often; more hardly helps, as a look
    /// (`fstatat`) costs 1 to 2 µs.
    static let capacity = 4096

    private struct Note {
        var fingerprint: UInt64 = 0
        var accessed = Timestamp.distantPast
    }

    private var notes: [Note] = []

    /// The entry's access time, if it is known to be after `start` and less than `granularity` old.
    ///
    /// - Parameter granularity: in nanoseconds, as everywhere here: arithmetic on `Duration` takes longer than all the
    ///   rest.
    func recent(_ key: Digest, now: Timestamp, granularity: Int64, after start: Timestamp) -> Timestamp? {
        guard !notes.isEmpty else { return nil }
        let note = notes[Self.place(of: key)]
        guard note.fingerprint == key.word(0), note.accessed.nanoseconds > start.nanoseconds,
            Self.isRecent(note.accessed, now: now, granularity: granularity)
        else { return nil }
        return note.accessed
    }

    /// Remembers the access time that an entry has on disk.
    mutating func note(_ key: Digest, accessed: Timestamp) {
        if notes.isEmpty { notes = Array(repeating: Note(), count: Self.capacity) }
        notes[Self.place(of: key)] = Note(fingerprint: key.word(0), accessed: accessed)
    }

    /// Whether an access time is good enough.
    ///
    /// One in the future is not: a clock was put back.
    static func isRecent(_ accessed: Timestamp, now: Timestamp, granularity: Int64) -> Bool {
        // The span from an access far in the past does not fit 64 bits, and that access is not recent.
        let (age, isOverflow) = now.nanoseconds.subtractingReportingOverflow(accessed.nanoseconds)
        return !isOverflow && age >= 0 && age < granularity
    }

    private static func place(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(1)) & (capacity - 1)
    }
}
