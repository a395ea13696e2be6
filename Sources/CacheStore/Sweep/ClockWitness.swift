// SPDX-License-Identifier: Apache-2.0

import Platform

/// Notices that the wall clock was put back since this was made.
struct ClockWitness {
    let time: Timestamp
    private let instant: SuspendingClock.Instant

    init(time: Timestamp = .now, instant: SuspendingClock.Instant = .now) {
        self.time = time
        self.instant = instant
    }

    /// One that another process of the same boot has made.
    init(time: Timestamp, uptime: Duration) {
        self.init(time: time, instant: SuspendingClock().systemEpoch + uptime)
    }

    /// What the clock that is never set showed when this was made: all processes share it until the machine is
    /// started anew.
    var uptime: Duration { SuspendingClock().systemEpoch.duration(to: instant) }

    /// The wall clock has gone on at least as far as the one that is never set.
    ///
    /// Both are slewed alike. They are read in such an order, here and when this was made, that a pause
    /// between the two readings makes the wall clock seem to have gone further, never less far: what such a
    /// pause may hide is a step back by less than it lasts.
    var isSteady: Bool {
        let elapsed = SuspendingClock.now - instant
        return Timestamp.now - time >= elapsed
    }
}

/// When a sweep looked, by which it tells what was used or changed since then.
struct SweepStamp: Sendable {
    /// The present as the file system dates changes, taken before any entry was read.
    var time = Timestamp.distantPast
    /// Made before that.
    let clock: ClockWitness
    /// Whether change times tell of all changes of an entry; those of objects tell on each file system.
    let datesAttributes: Bool

    /// Whether nobody has overwritten, read or replaced the entry with this state since; false also where that can't be
    /// told by its state alone.
    ///
    /// All of that raises the change time, as the file system that gave the stamp dates it, but for accesses that the
    /// kernel notes by itself: those raise the access time. The clock is asked last, as for objects.
    func isUntouched(_ entry: SeenEntry, _ status: FileStatus) -> Bool {
        datesAttributes && status.changed < time && status.accessed <= entry.lastUse
            && UInt32(truncatingIfNeeded: status.identity.inode) == entry.inode && clock.isSteady
    }

    /// Whether nobody has wanted the object with this state since: a put touches it, and its entry may not have been
    /// seen.
    ///
    /// The clock is asked last: had it been put back before the object was touched, so that the touch looks older
    /// than the stamp, it is known now.
    ///
    /// An object that was last changed in the future was written or touched while the clock was ahead. That was before
    /// the stamp, as the clock was not put back since. The file system's own clock decides what the future is.
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

extension StoreParts {
    /// Whether nobody has wanted an object since the stamp; the caller holds its stripe exclusively.
    ///
    /// No system call, but three for an object that was changed in the future: it is touched. A dry run does not touch it.
    func isUntouched(
        _ digest: Digest,
        _ status: FileStatus,
        _ stamp: SweepStamp,
        isDryRun: Bool = false
    ) throws(CacheError) -> Bool {
        try stamp.isUntouched(object: status) { () throws(CacheError) in
            if isDryRun { return .now }
            return try objects.touch(digest) ? directory.status(of: digest, .objects)?.changed : nil
        }
    }
}
