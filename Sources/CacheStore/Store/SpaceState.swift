// SPDX-License-Identifier: Apache-2.0

import Platform

/// The outcome of an attempt to make room.
package enum Relief: Sendable, Equatable {
    /// This process or another one has removed files.
    case done
    /// At most one object was removed that no entry named.
    ///
    /// The caller's last attempt may have left it, if the disk had room for the object and not for its entry.
    case little
    /// Another process is making room.
    case busy
    /// Nothing is left to remove.
    case impossible
    /// The time was too short to find something to remove.
    case unfinished
}

/// What the threads of a process share about the space in the directory.
struct SpaceState: ~Copyable {
    /// How long a put waits for space, unless its ``SpaceWait`` says otherwise.
    let patience: Duration
    /// Called when a put passes the high mark.
    let pressed = Locked<PressureListener?>(nil)
    /// The last sweep that found nothing to evict.
    let futileSweep = Locked<FutileSweep?>(nil)
    /// The last attempt to count the directory that failed.
    let failedCount = Locked<FailedCount?>(nil)

    /// An attempt to count the directory that has failed.
    struct FailedCount {
        /// The time of the next attempt.
        let end: ContinuousClock.Instant
        /// False if the time was too short.
        let isUnreadable: Bool
    }

    /// The state of the directory according to the words in memory.
    struct View: Equatable {
        var usage: StoreUsage?
        var claimed = ClaimedSpace()
        /// Replaced entries; counted only without limits, where their old values are all that a sweep can remove.
        var replaced = 0
    }

    /// A sweep that found nothing to evict.
    struct FutileSweep {
        /// The time of the next sweep, if nothing changes before.
        let end: ContinuousClock.Instant
        let view: View
        /// How long the sweep took.
        let effort: Duration
        /// ``Relief/busy`` if claims may end or their values may be evicted; ``Relief/unfinished`` if the time ran out;
        /// otherwise ``Relief/impossible``.
        let relief: Relief
    }
}

/// A structure, because a closure that is stored as a generic value is wrapped again at each access.
struct PressureListener {
    let body: @Sendable () -> Void
}
