// SPDX-License-Identifier: Apache-2.0

import Platform

/// How fast a sweep works; by default it works without rests until it has finished.
package struct SweepPace: Sendable {
    /// When the sweep must end, finished or not; nil if it has no deadline.
    package var deadline: ContinuousClock.Instant?
    /// How long the sweep works between two rests; nil if it does not rest.
    package var slice: Duration?
    /// How long the sweep rests after each slice.
    package var rest: Duration = .zero
    /// Called between any two files; returns true to end the sweep early.
    ///
    /// If it is nil, the sweep can't be canceled.
    package var isCancelled: (@Sendable () -> Bool)?
    /// Rests for at most the given time; returns false to end the sweep.
    package var pause: @Sendable (Duration) -> Bool = { time in
        sleepThread(for: time)
        return true
    }

    package init(until deadline: ContinuousClock.Instant? = nil) {
        self.deadline = deadline
    }

    /// Returns a pace that uses a fifth of a processor.
    ///
    /// Its slices are 4 ms, about the time slice of the kernel's scheduler, with rests of 16 ms.
    ///
    /// A scan of 100,000 entries is about 0.5 s of work, and so takes 2.5 s in all. About 1,000 entries are deleted per
    /// second.
    package static func sparing(pause: @escaping @Sendable (Duration) -> Bool) -> SweepPace {
        var pace = SweepPace()
        pace.slice = .milliseconds(4)
        pace.rest = .milliseconds(16)
        pace.pause = pause
        return pace
    }
}

/// Keeps the pace of one thread of a sweep, and reports its progress.
struct SweepPacer {
    private let pace: SweepPace
    private let control: Control
    /// Whether the sweep has no deadline, no rests and can't be canceled; stored, because it is checked between any two
    /// files.
    let isUnlimited: Bool
    private var sliceBegin = ContinuousClock.now
    /// Whether the sweep must end: the time has run out, or the sweep was canceled.
    private var hasEnded = false
    /// The time worked in finished slices.
    private var worked: Duration = .zero
    /// The number of calls of ``mayGoOn()``.
    private var steps = 0

    /// The number of steps between two reports.
    ///
    /// They are few enough that waiters see progress within ``JanitorWait/longestStandstill`` even if each file takes a
    /// slow disk 20 ms, and many enough that the reports cost nothing.
    private static let stepsPerNote = 16

    init(_ pace: SweepPace, in control: Control) {
        self.pace = pace
        self.control = control
        isUnlimited = pace.deadline == nil && pace.slice == nil && pace.isCancelled == nil
    }

    /// The time worked so far.
    var busy: Duration { worked + (ContinuousClock.now - sliceBegin) }

    /// Whether the sweep works in slices, so that other processes hardly notice it.
    var isSparing: Bool { pace.slice != nil }

    /// Whether the time has run out; does not tell whether a rest is due.
    var isOver: Bool { hasEnded || pace.deadline.map { ContinuousClock.now >= $0 } ?? false }

    /// The remaining time; never negative.
    var rest: Duration {
        guard let deadline = pace.deadline else { return .nanoseconds(Int64.max) }
        return max(.zero, deadline - .now)
    }

    /// Rests if a slice has ended; returns false once the time has run out or the sweep was canceled.
    ///
    /// Called between any two files, while no stripe is held. It makes system calls only to rest.
    mutating func mayGoOn() -> Bool {
        steps &+= 1
        if steps.isMultiple(of: Self.stepsPerNote) { control.noteSweepStep() }
        if isUnlimited { return true }
        hasEnded = isOver || pace.isCancelled?() ?? false
        let now = ContinuousClock.now
        if !hasEnded, let slice = pace.slice, now - sliceBegin >= slice {
            worked += now - sliceBegin
            hasEnded = !pace.pause(pace.rest)
            sliceBegin = .now
        }
        return !hasEnded
    }
}
