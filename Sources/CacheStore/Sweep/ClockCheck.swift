// SPDX-License-Identifier: Apache-2.0

import Platform

/// Detects that the wall clock was set back after this value was created.
struct ClockCheck {
    let time: Timestamp
    private let instant: SuspendingClock.Instant

    init(time: Timestamp = .now, instant: SuspendingClock.Instant = .now) {
        self.time = time
        self.instant = instant
    }

    /// Creates a check from clock readings that another process took since the same boot.
    init(time: Timestamp, uptime: Duration) {
        self.init(time: time, instant: SuspendingClock().systemEpoch + uptime)
    }

    /// The reading of the monotonic clock when this value was created.
    ///
    /// All processes share that clock until the machine restarts.
    var uptime: Duration { SuspendingClock().systemEpoch.duration(to: instant) }

    /// Whether the wall clock has advanced at least as far as the monotonic clock.
    ///
    /// The kernel slews both clocks alike. The order of the two readings, here and at creation, ensures that a pause
    /// between them makes the wall clock seem to have advanced further, never less far. So a pause can hide only a step
    /// back that is shorter than the pause.
    var isSteady: Bool {
        let elapsed = SuspendingClock.now - instant
        return Timestamp.now - time >= elapsed
    }
}

/// The time of a sweep, used to detect later uses and changes.
struct SweepStamp: Sendable {
    /// When the sweep began, by the clock that the file system uses for change times; taken before any entry was read.
    var time = Timestamp.distantPast
    /// Created before ``time`` was taken.
    let clock: ClockCheck
    /// Whether change times show all changes of an entry; for objects they do so on every file system.
    let datesAttributes: Bool

    /// Returns whether the entry with this status was not overwritten, read or replaced since the stamp; also returns
    /// false if the status alone can't show that.
    ///
    /// Each of these operations raises the change time, by the clock of the file system that the stamp was taken from.
    /// The exception is an access that the kernel records itself: it raises the access time. The clock is checked last,
    /// for the same reason as for objects.
    func isUntouched(_ entry: SeenEntry, _ status: FileStatus) -> Bool {
        datesAttributes && status.changed < time && status.accessed <= entry.lastUse
            && UInt32(truncatingIfNeeded: status.identity.inode) == entry.inode && clock.isSteady
    }

    /// Returns whether no put has used the object with this status since the stamp.
    ///
    /// A put touches its object, and the sweep may not have seen the entry of that put.
    ///
    /// The clock is checked last. If it was set back before a put touched the object, the touch looks older than the
    /// stamp; by then the check detects that the clock was set back.
    ///
    /// An object whose change time lies in the future was written or touched while the clock was ahead. That was before
    /// the stamp, because the clock was not set back since. The file system's own clock decides what lies in the future.
    ///
    /// - Parameter touch: touches the object, whose stripe the caller holds exclusively, and returns its new change time.
    func isUntouched(
        object status: FileStatus,
        touch: () throws(CacheError) -> Timestamp?
    ) throws(CacheError) -> Bool {
        if status.changed < time { return clock.isSteady }
        guard status.changed > .now + Self.slack, let touched = try touch() else { return false }
        return status.changed > touched + Self.slack && clock.isSteady
    }

    /// More than the granularity of times on any file system: FAT has two seconds.
    private static let slack: Duration = .seconds(3)
}

extension Store {
    /// Returns whether no put has used the object since the stamp.
    ///
    /// No system calls, or four for an object whose change time lies in the future: it is touched, except in a dry run.
    func isUntouched(
        _ digest: Digest,
        _ status: FileStatus,
        _ stamp: SweepStamp,
        isDryRun: Bool = false,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> Bool {
        try stamp.isUntouched(object: status) { () throws(CacheError) in
            if isDryRun { return .now }
            guard try objects.touch(digest, under: lock) else { return nil }
            return try directory.status(of: digest, .objects)?.changed
        }
    }
}
