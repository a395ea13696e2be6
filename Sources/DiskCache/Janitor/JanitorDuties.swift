// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What a cache lets its janitor and its closing do for it.
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
    /// The path leads to another directory, or to none: go on there.
    var reopen: @Sendable () throws(StoreError) -> Void = {}
    /// A sweep of this janitor has ended.
    var swept: @Sendable (SweepReport) -> Void = { _ in }
    /// Something in the background failed; it is tried again.
    var failed: @Sendable (StoreError) -> Void = { _ in }

    /// From now on the cache refuses calls; false: it did already.
    var shut: @Sendable () -> Bool
    /// Publishes what waits to be, until the deadline; false: something is left.
    var drain: @Sendable (ContinuousClock.Instant) -> Bool = { _ in true }
    /// Writes down the uses of values in memory, and counters: the last time.
    var flush: @Sendable () -> Void = {}
    /// Nothing more happens.
    var closed: @Sendable () -> Void = {}
}
