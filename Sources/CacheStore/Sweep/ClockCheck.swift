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

    /// Creates a witness from the readings of another process of the same boot.
    init(time: Timestamp, uptime: Duration) {
        self.init(time: time, instant: SuspendingClock().systemEpoch + uptime)
    }

    /// The reading of the monotonic clock when this value was created.
    ///
    /// All processes share that clock until the machine restarts.
    var uptime: Duration { SuspendingClock().systemEpoch.duration(to: instant) }

    /// Whether the wall clock has advanced at least as far as the monotonic clock.
    ///
    /// Both clocks are slewed alike. They are read in such an order, here and at creation, that a pause between the two
    /// readings makes the wall clock seem to have advanced further, never less far. So a pause can hide only a step back
    /// that is shorter than the pause.
    var isSteady: Bool {
        let elapsed = SuspendingClock.now - instant
        return Timestamp.now - time >= elapsed
    }
}

/// The time of a sweep, used to detect later uses and changes.
struct SweepStamp: Sendable {
    /// The time when the sweep began, as the file system dates changes, taken before any entry was read.
    var time = Timestamp.distantPast
    /// Created before ``time`` was taken.
    let clock: ClockCheck
    /// Whether change times show all changes of an entry; those of objects do on every file system.
    let datesAttributes: Bool

    /// Returns whether the entry with this state was not overwritten, read or replaced since; also false if the state alone
    /// can't show it.
    ///
    /// All of these raise the change time, as dated by the file system that the stamp came from. The exception is an access
    /// that the kernel records itself: it raises the access time. The clock is checked last, as for objects.
    func isUntouched(_ entry: SeenEntry, _ status: FileStatus) -> Bool {
        datesAttributes && status.changed < time && status.accessed <= entry.lastUse
            && UInt32(truncatingIfNeeded: status.identity.inode) == entry.inode && clock.isSteady
    }

    /// Returns whether the object with this state was not needed since the stamp.
    ///
    /// A put touches its object, and the sweep may not have seen the entry of that put.
    ///
    /// The clock is checked last: if it was set back before the object was touched, so that the touch looks older than the
    /// stamp, that is detected by now.
    ///
    /// An object whose change time lies in the future was written or touched while the clock was ahead. That was before the
    /// stamp, as the clock was not set back since. The file system's own clock decides what the future is.
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
    /// Returns whether the object was not needed since the stamp.
    ///
    /// No system calls, or three for an object whose change time lies in the future: it is touched, except in a dry run.
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
