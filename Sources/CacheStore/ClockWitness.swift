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
