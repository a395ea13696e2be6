// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a put does where there is no room.
package struct RoomTerms {
    /// How long it waits for room and works to make some; nil: ``StoreOptions/roomPatience``.
    package var patience: Duration?
    /// Called once where that takes longer than a moment: whoever waits for the caller need not wait for that.
    package var whileWaiting: () -> Void
    /// The time that the call has waited for room and worked for some.
    var spent: Duration = .zero

    /// How long to wait for one stripe then.
    ///
    /// With what was spent less than a second, also where that was for one who is stopped; holders keep them for
    /// microseconds.
    var stripePatience: Duration {
        spent == .zero
            ? Stripes.writerPatience
            : max(.milliseconds(150), min(Stripes.writerPatience, .milliseconds(850) - spent))
    }

    package init(patience: Duration? = nil, whileWaiting: @escaping () -> Void = {}) {
        self.patience = patience
        self.whileWaiting = whileWaiting
    }
}

/// The time that somebody waits for another process, the holder of the `janitor` lock, or makes room itself.
///
/// As long as the other one gets on, which it counts in the control file, the wait may take as long as the patience
/// says; without a step for ``longestStandstill`` it is over. So one that is stopped, frozen or hangs costs each process
/// that wait once: whoever comes later, and finds that not a step was made since, does not wait at all. One that only
/// lacks a processor is given ten times as long. Where no control file
/// is mapped a holder that works can't be told from one that is stopped, and all of the patience is waited for.
struct RoomWait {
    /// A sweep takes a step every few files, and waits for a stripe half as long at most.
    ///
    /// With what else a call does it comes to less than a second.
    static let longestStandstill: Duration = .milliseconds(800)
    /// How many times that, where the holder is not stopped but only lacks a processor.
    private static let mostStandstills = 10
    /// So long others wait along: most waits are over sooner, and what those do instead may cost more.
    private static let courtesy: Duration = .milliseconds(100)

    let patience: Duration
    private let store: Store
    private let terms: RoomTerms
    private var start: ContinuousClock.Instant?
    private var steps: UInt64?
    private var still: ContinuousClock.Instant?
    private var standstills = 0
    private var backoff = Backoff()
    /// Whether it ended because nobody got on.
    private var isStuck = false
    /// Whether ``RoomTerms/whileWaiting`` was called.
    private var isAlone = false
    private var hasTriedInVain = false

    init(_ terms: RoomTerms, in store: Store) {
        self.store = store
        self.terms = terms
        patience = max(.zero, (terms.patience ?? store.roomPatience) - terms.spent)
    }

    /// The time since ``begin()``.
    var elapsed: Duration { start.map { .now - $0 } ?? .zero }

    /// Whether the time is over.
    var isOver: Bool { elapsed >= patience }

    /// Work of its own for as long: a second at least, or nobody without patience would ever make room.
    var pace: SweepPace {
        var pace = SweepPace()
        pace.deadline = (start ?? .now) + effort
        return pace
    }

    /// How long it works at most.
    var effort: Duration { max(patience, Self.longestStandstill) }

    /// Why nobody has made room, where it is another process that does not move.
    var hindrance: String? { isStuck ? Self.hindrance(in: store) : nil }

    /// Who keeps others from sweeping.
    static func hindrance(in store: Store) -> String {
        // Who has left its number may have ended long ago.
        guard let process = store.control.sweepHolder, store.holdsJanitorLock(process) else {
            return "the process that makes room does not move: it may be stopped"
        }
        return
            "process \(process), which makes room, does not move: see whether it is stopped (`ps \(process)`)"
    }

    /// Whether to try once more although nothing was set free; the first time only.
    mutating func mayTryInVain() -> Bool {
        defer { hasTriedInVain = true }
        return !hasTriedInVain
    }

    /// From now on the time runs.
    mutating func begin() {
        if start == nil { start = .now }
    }

    /// Waits a moment for who holds the `janitor` lock; false where that is of no use.
    mutating func pause() throws(StoreError) -> Bool {
        begin()
        if isOver { return false }
        guard try mayHope() else { return false }
        if !isAlone, elapsed > Self.courtesy {
            isAlone = true
            terms.whileWaiting()
        }
        var generator = SystemRandomNumberGenerator()
        sleepThread(for: backoff.next(using: &generator))
        return true
    }

    /// Waits until nobody holds the `janitor` lock; false where that takes too long.
    mutating func pauseUntilSwept() throws(StoreError) -> Bool {
        repeat {
            if try Sweep.isFree(in: store) { return true }
        } while try pause()
        return false
    }

    /// Whether the holder gets on, as far as can be told.
    private mutating func mayHope() throws(StoreError) -> Bool {
        guard let present = store.control.sweepSteps else { return true }
        if store.standstill.withLock({ $0 }) != present {
            let now = ContinuousClock.now
            guard present == steps, let still else {
                (steps, still) = (present, now)
                return true
            }
            if now - still < Self.longestStandstill { return true }
            standstills += 1
            if standstills < Self.mostStandstills, let process = store.control.sweepHolder,
                ProcFiles.isRunnable(process)
            {
                self.still = now
                return true
            }
        }
        // Nobody gets on either where nobody is at it.
        if try Sweep.isFree(in: store) { return true }
        store.standstill.withLock { $0 = present }
        isStuck = true
        return false
    }
}
