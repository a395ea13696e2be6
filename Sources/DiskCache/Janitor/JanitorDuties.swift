// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What the janitor and closing do on behalf of a cache.
///
/// The closures live as long as the janitor's thread, so they must not hold the ``SharedCache``.
struct JanitorDuties: Sendable {
    /// The directory's files, as they are now.
    var store: @Sendable () -> Store
    /// The time by which values expire.
    var now: @Sendable () -> Timestamp
    /// Time between two rounds, at most a second.
    var tick: @Sendable () -> Duration = { .seconds(1) }
    /// Called each round, also during a sweep: notes the uses of values in memory.
    var everyTick: @Sendable () -> Void = {}
    /// Called about once a second, also during a sweep: looks at the memory pressure, for the control file, and for other
    /// limits.
    var everySecond: @Sendable () -> Void = {}
    /// Called when the path leads to another directory, or to none: continues there.
    var reopen: @Sendable () throws(StoreError) -> Void = {}
    /// A sweep of this janitor has ended.
    var swept: @Sendable (SweepReport) -> Void = { _ in }
    /// Called when something in the background has failed.
    ///
    /// It is tried again.
    var failed: @Sendable (StoreError) -> Void = { _ in }

    /// Makes the cache refuse calls from now on; false if it did already.
    var shut: @Sendable () -> Bool
    /// Publishes queued puts until the deadline; false if some are left.
    var drain: @Sendable (ContinuousClock.Instant) -> Bool = { _ in true }
    /// Records the uses of values in memory, and counters, for the last time.
    var flush: @Sendable () -> Void = {}
    /// Called when everything is over.
    var closed: @Sendable () -> Void = {}
}
