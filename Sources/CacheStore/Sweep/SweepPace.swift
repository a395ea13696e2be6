// SPDX-License-Identifier: Apache-2.0

import Platform

/// How fast a sweep works: without rests and to its end, unless told otherwise.
package struct SweepPace: Sendable {
    /// When it has to end, done or not.
    package var deadline: ContinuousClock.Instant?
    /// How long it works at a time.
    package var slice: Duration?
    /// How long it rests after each slice.
    package var rest: Duration = .zero
    /// Asked between any two files, whether to end although it is not done; nil: nobody calls it off.
    package var isCalledOff: (@Sendable () -> Bool)?
    /// Rests for a time, or less; false: end the sweep.
    package var pause: @Sendable (Duration) -> Bool = { time in
        sleepThread(for: time)
        return true
    }

    package init(until deadline: ContinuousClock.Instant? = nil) {
        self.deadline = deadline
    }

    /// A fifth of a processor: slices of 4 ms, which is about the time that the kernel's scheduler gives a
    /// thread in one go, with rests of 16 ms.
    ///
    /// A scan of 100,000 entries takes about 0.5 s of work and so 2.5 s in all; about 1,000 entries are
    /// deleted in a second.
    package static func sparing(pause: @escaping @Sendable (Duration) -> Bool) -> SweepPace {
        var pace = SweepPace()
        pace.slice = .milliseconds(4)
        pace.rest = .milliseconds(16)
        pace.pause = pause
        return pace
    }
}

/// Keeps the time of one thread of a sweep, and says that it gets on.
struct SweepPacer {
    private let pace: SweepPace
    private let control: Control
    /// Whether it works to its end without a rest: asked between any two files, so it costs one load.
    let isUnlimited: Bool
    private var sliceBegin = ContinuousClock.now
    /// Whether the time is over, or the pause has called the sweep off.
    private var hasEnded = false
    /// The time worked in slices that have ended.
    private var worked: Duration = .zero
    /// How often it was asked whether to go on.
    private var steps = 0

    /// So few that those who wait see it get on within ``JanitorWait/longestStandstill`` also where each file takes the
    /// medium 20 ms, and so many that to say so costs nothing.
    private static let stepsPerNote = 16

    init(_ pace: SweepPace, in control: Control) {
        self.pace = pace
        self.control = control
        isUnlimited = pace.deadline == nil && pace.slice == nil && pace.isCalledOff == nil
    }

    /// The time worked so far.
    var busy: Duration { worked + (ContinuousClock.now - sliceBegin) }

    /// Whether it works in slices, so that others hardly notice it.
    var isSparing: Bool { pace.slice != nil }

    /// Whether the time is over; a rest may be due besides.
    var isOver: Bool { hasEnded || pace.deadline.map { ContinuousClock.now >= $0 } ?? false }

    /// The time that is left; never negative.
    var rest: Duration {
        guard let deadline = pace.deadline else { return .nanoseconds(Int64.max) }
        return max(.zero, deadline - .now)
    }

    /// Rests where a slice has ended; false from the moment when the time is over or the pause called the sweep
    /// off.
    ///
    /// Called between single things, while no stripe is held. No system call but in a rest.
    mutating func mayGoOn() -> Bool {
        steps &+= 1
        if steps.isMultiple(of: Self.stepsPerNote) { control.noteSweepStep() }
        if isUnlimited { return true }
        hasEnded = isOver || pace.isCalledOff?() ?? false
        let now = ContinuousClock.now
        if !hasEnded, let slice = pace.slice, now - sliceBegin >= slice {
            worked += now - sliceBegin
            hasEnded = !pace.pause(pace.rest)
            sliceBegin = .now
        }
        return !hasEnded
    }
}
