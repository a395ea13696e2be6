// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The conditions under which a copy of a value in memory may be returned.
///
/// The tier itself checks the generation until ``due``. Its caller checks everything else, because the tier has access to
/// neither disk nor clock.
struct MemoryValidity: Sendable, Equatable {
    /// The key's generation for which the copy is valid; nil without a control file.
    var generation: Generation?
    /// The time until which the copy may be returned without reading the disk; `distantFuture` for forever.
    var end: Timestamp
    /// When an access must be recorded on disk again.
    var accessDue: Timestamp

    /// Creates a validity.
    ///
    /// - Parameter heldUntil: the end; nil for forever.
    init(
        generation: Generation? = nil,
        heldUntil: Timestamp? = nil,
        accessDue: Timestamp = .distantFuture
    ) {
        self.generation = generation
        end = heldUntil ?? .distantFuture
        self.accessDue = accessDue
    }

    /// The time by the coarse clock until which only the generation must be checked; `distantPast` if there is no
    /// generation.
    var due: Timestamp {
        if generation == nil { return .distantPast }
        return end == .distantFuture
            ? accessDue : min(accessDue, end.advanced(byNanoseconds: -Self.coarseClockLag))
    }

    /// Returns whether the coarse clock suffices to decide that `end` has not come.
    func isBeforeEnd(_ coarseNow: Timestamp) -> Bool {
        end == .distantFuture || coarseNow.advanced(byNanoseconds: Self.coarseClockLag) < end
    }

    /// The time by which the coarse clock may lag, in nanoseconds.
    ///
    /// While the processor that keeps the time runs, the lag is at most a tick of the kernel, 1 to 10 ms (CONFIG_HZ). In
    /// a virtual machine the host may stop that processor while others continue: Linux lets another one take over after 5
    /// ticks (MAX_STALLED_JIFFIES in kernel/time/tick-sched.c); older kernels, and processors without ticks (nohz_full),
    /// wait as long as the host does. A lag of more than 20 ms was observed. No kernel promises a bound, so a second is
    /// not measured but chosen, as far beyond what hosts do. Its only cost is that each hit in the last second of a
    /// value's life reads the exact clock.
    private static var coarseClockLag: Int64 { 1_000_000_000 }
}

/// The limits of the memory tier.
struct MemoryLimits: Sendable, Equatable {
    /// The maximum sum of the values' costs.
    var cost: Int
    /// The maximum number of values.
    var count: Int

    /// The maximum cost of one value: a quarter of the total limit.
    ///
    /// A larger value would evict many values that are in use, and would soon be evicted itself. The result is at least 1
    /// (unless the limit is 0), so that a cost limit can count values.
    var largestCost: Int { cost == .max ? .max : max(cost / 4, min(cost, 1)) }
}
