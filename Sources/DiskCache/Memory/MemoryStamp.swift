// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What a copy must satisfy to be returned.
///
/// The caller judges it, because the tier knows neither disk nor clock.
struct MemoryStamp: Sendable, Equatable {
    /// The word under which the copy may be held; nil without a control file.
    var generation: Generation?
    /// Until when it may be returned without a look at the disk; the end of time for ever.
    var end: Timestamp
    /// When an access must be recorded on disk again.
    var accessDue: Timestamp

    /// - Parameter heldUntil: nil: it may be given out for ever.
    init(
        generation: Generation? = nil,
        heldUntil: Timestamp? = nil,
        accessDue: Timestamp = .distantFuture
    ) {
        self.generation = generation
        end = heldUntil ?? .distantFuture
        self.accessDue = accessDue
    }

    /// Until when by the coarse clock nothing but the generation has to be looked at; the beginning of time
    /// where there is none.
    var due: Timestamp {
        if generation == nil { return .distantPast }
        return end == .distantFuture
            ? accessDue : min(accessDue, end.advanced(byNanoseconds: -Self.coarseClockLag))
    }

    /// Whether the coarse clock decides that `end` has not come.
    func isBeforeEnd(_ coarseNow: Timestamp) -> Bool {
        end == .distantFuture || coarseNow.advanced(byNanoseconds: Self.coarseClockLag) < end
    }

    /// Nanoseconds by which the coarse clock may be late.
    ///
    /// A tick of the kernel, 1 to 10 ms (CONFIG_HZ), where the processor that keeps the time runs. In a virtual
    /// machine the host may stop that one while others run on: Linux lets another take over after 5 ticks
    /// (MAX_STALLED_JIFFIES in kernel/time/tick-sched.c); older kernels, and processors without ticks (nohz_full),
    /// wait for as long as the host does. More than 20 ms were seen. So no kernel promises a bound; a second is
    /// chosen as far beyond what hosts do, not measured. It costs a look at the exact clock for each hit in the last
    /// second of a value's life, no more.
    private static var coarseClockLag: Int64 { 1_000_000_000 }
}

/// How much the tier holds at most.
struct MemoryLimits: Sendable, Equatable {
    /// Sum of the values' costs.
    var cost: Int
    /// Number of values.
    var count: Int

    /// The cost of the largest value that is held: a quarter of the whole.
    ///
    /// A larger one would push out much of what is in use, and is gone again soon. Not less than 1, for limits that count
    /// values.
    var largestCost: Int { cost == .max ? .max : max(cost / 4, min(cost, 1)) }
}
