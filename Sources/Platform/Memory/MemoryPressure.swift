// SPDX-License-Identifier: Apache-2.0

/// A level of memory pressure.
package enum MemoryPressure: Sendable, Comparable {
    /// Enough memory is free.
    case none
    /// Tasks are stalled: caches should release some memory.
    case some
    /// Little memory is left before processes are killed: caches should release most of theirs.
    case critical

    /// Creates the level for the percentage of the last ten seconds in which some task waited for memory.
    ///
    /// From 10 % on, each task that allocates loses a tenth of its time, which is noticeable. At 40 % machines stop doing
    /// useful work. For comparison, systemd-oomd kills at 60 % of the stricter measure, the time in which all tasks
    /// waited.
    init(stalled percent: Double) {
        self = percent >= 40 ? .critical : percent >= 10 ? .some : .none
    }

    /// Creates the level for a control group's memory usage.
    ///
    /// `used` must not include the page cache, which the kernel reclaims automatically.
    ///
    /// The level is ``some`` from 90 % of the limit on, and ``critical`` from 97 % on. Beyond the limit the kernel slows
    /// the group down (memory.high) or kills processes in it (memory.max).
    init(used: Int64, limit: Int64) {
        let part = limit > 0 ? Double(used) / Double(limit) : 1
        self = part >= 0.97 ? .critical : part >= 0.9 ? .some : .none
    }
}
