// SPDX-License-Identifier: Apache-2.0

import Platform

/// The outcome of an attempt to make room.
package enum Relief: Sendable, Equatable {
    /// This process or another one has removed files.
    case done
    /// A single orphan was removed, and nothing else.
    ///
    /// The caller's previous attempt may have left it, if the disk had room for the object but not for its entry.
    case little
    /// Another process is making room.
    case busy
    /// Nothing is left to remove.
    case impossible
    /// The time ran out before something to remove was found.
    case unfinished
}

/// The state of the space in the directory that the threads of a process share.
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
        /// Whether a part of the directory could not be read; false if the time ran out.
        let isUnreadable: Bool
    }

    /// The state of the directory, as the words in the control file show it.
    struct View: Equatable {
        var usage: StoreUsage?
        var claimed = ClaimedSpace()
        /// The number of replaced entries; used only if there are no limits, because then their old values are all that a
        /// sweep can remove.
        var replaced = 0
    }

    /// A sweep that found nothing to evict.
    struct FutileSweep {
        /// The time of the next sweep, unless something changes before.
        let end: ContinuousClock.Instant
        let view: View
        /// How long the sweep took.
        let effort: Duration
        /// ``Relief/busy`` if claims may end, or if values that are in use may be evicted later; ``Relief/unfinished`` if
        /// the time ran out; otherwise ``Relief/impossible``.
        let relief: Relief
    }
}

/// A function, in a structure because a closure that is stored as a generic value is wrapped again at each access.
struct PressureListener {
    let body: @Sendable () -> Void
}
