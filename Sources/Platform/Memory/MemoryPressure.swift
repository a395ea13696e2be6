// SPDX-License-Identifier: Apache-2.0

/// How short memory is.
package enum MemoryPressure: Sendable, Comparable {
    /// There is enough.
    case none
    /// Work is being held up: caches should give some of theirs back.
    case some
    /// Little is left before processes are killed: caches should give most of theirs back.
    case critical

    /// What it means that some task waited for memory in so many percent of the last ten seconds.
    ///
    /// From 10 % on, each task that allocates loses a tenth of its time, which is noticed. 40 % is where
    /// machines stop doing useful work: systemd-oomd kills at 60 % of a stall that holds all tasks up, which is
    /// the stricter measure.
    init(stalled percent: Double) {
        self = percent >= 40 ? .critical : percent >= 10 ? .some : .none
    }

    /// What it means that a control group uses so much of the memory that it may use, the page cache left out, which the
    /// kernel takes back by itself: from 90 % on some pressure, from 97 % on a critical one.
    ///
    /// Beyond the limit the kernel slows the group down (memory.high) or kills in it (memory.max).
    init(used: Int64, limit: Int64) {
        let part = limit > 0 ? Double(used) / Double(limit) : 1
        self = part >= 0.97 ? .critical : part >= 0.9 ? .some : .none
    }
}
