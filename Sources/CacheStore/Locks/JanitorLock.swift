// SPDX-License-Identifier: Apache-2.0

import Platform

/// The lock of those who sweep or evict: one process at a time.
///
/// Its holder leaves its number and counts its steps in the control file, so that others can tell whether it gets on.
package final class JanitorLock: Sendable {
    fileprivate let control: Control
    /// At which of its steps the holder was found not to move.
    fileprivate let standstill = Locked<UInt64?>(nil)

    init(in control: Control) {
        self.control = control
    }

    /// Takes the lock; nil where somebody holds it.
    ///
    /// Three system calls where another process has it.
    func take() throws(CacheError) -> LockFile? {
        guard let lock = try attempt() else { return nil }
        control.noteSweepHolder()
        return lock
    }

    /// Whether nobody holds it at this moment.
    func isFree() throws(CacheError) -> Bool {
        guard let lock = try attempt() else { return false }
        lock.release()
        return true
    }

    private func attempt() throws(CacheError) -> LockFile? {
        try control.directory.lock(StoreLayout.janitorLock, patience: .zero)
    }

    var path: String { "\(control.directory.path)/\(StoreLayout.locks)/\(StoreLayout.janitorLock)" }

    /// Whether the process of that number, as this one sees it, holds the lock; false where that can't be told.
    func isHeld(by process: Int32) -> Bool {
        control.directory.holders(ofLock: StoreLayout.janitorLock).contains(process)
    }

    /// Who keeps others from sweeping, in words.
    var hindrance: String {
        // The process that left its number may have ended long ago.
        guard let process = control.sweepHolder, isHeld(by: process) else {
            return "the process that makes room does not move: it may be stopped"
        }
        return
            "process \(process), which makes room, does not move: see whether it is stopped (`ps \(process)`)"
    }

    /// Whether its holder is not stopped but lacks a processor or waits for a disk, as far as can be told.
    fileprivate var hasBusyHolder: Bool { control.sweepHolder.map { ProcFiles.isBusy($0) } ?? false }
}

/// The time that somebody waits for the holder of the `janitor` lock, or makes room itself.
///
/// As long as the holder gets on the wait may take as long as the patience says; without a step for
/// ``longestStandstill`` it is over. So a holder that is stopped, frozen or hangs costs each process that wait once:
/// whoever comes later, and finds that not a step was made since, does not wait at all. One that lacks a processor or
/// waits for a disk is given ten times as long. Where no control file is mapped a holder that works can't be told from one that is
/// stopped, and all of the patience is waited for.
struct JanitorWait {
    /// A sweep takes a step every few files, and waits for a stripe half as long at most.
    ///
    /// With what else a call does it comes to less than a second.
    static let longestStandstill: Duration = .milliseconds(800)
    /// How many times that, where the holder is not stopped but lacks a processor or waits for a disk.
    private static let mostStandstills = 10
    /// So long others wait along: most waits are over sooner, and what those do instead may cost more.
    private static let courtesy: Duration = .milliseconds(100)

    let patience: Duration
    private let lock: JanitorLock
    /// Called once where it takes longer than a moment.
    private var whileWaiting: (() -> Void)?
    private var start: ContinuousClock.Instant?
    /// The holder's steps as seen last, since when they are the same, and how often they were for too long.
    private var seen: (steps: UInt64, since: ContinuousClock.Instant, standstills: Int)?
    private var backoff = Backoff()
    /// Whether it ended because nobody got on.
    private var isStuck = false
    private var hasTriedInVain = false

    init(for lock: JanitorLock, patience: Duration, whileWaiting: (() -> Void)? = nil) {
        self.lock = lock
        // What can be added to any moment.
        self.patience = .nanoseconds(max(0, patience.saturatingNanoseconds))
        self.whileWaiting = whileWaiting
    }

    /// The time since ``begin()``.
    var elapsed: Duration { start.map { .now - $0 } ?? .zero }

    /// Whether the time is over.
    var isOver: Bool { elapsed >= patience }

    /// How long it makes room itself at most: a second at least, or nobody without patience would ever make room.
    var effort: Duration { max(patience, Self.longestStandstill) }

    /// When that is over.
    var deadline: ContinuousClock.Instant { (start ?? .now) + effort }

    /// Why nobody has made room, where it is another process that does not move.
    var hindrance: String? { isStuck ? lock.hindrance : nil }

    /// Whether to try once more although nothing was set free; the first time only.
    mutating func mayTryInVain() -> Bool {
        defer { hasTriedInVain = true }
        return !hasTriedInVain
    }

    /// From now on the time runs.
    mutating func begin() {
        if start == nil { start = .now }
    }

    /// Waits a moment for the holder; false where that is of no use.
    mutating func pause() throws(CacheError) -> Bool {
        begin()
        if isOver { return false }
        guard try mayHope() else { return false }
        if elapsed > Self.courtesy { whileWaiting.take()?() }
        sleepThread(for: backoff.next())
        return true
    }

    /// Waits until nobody holds the lock; false where that takes too long.
    mutating func pauseUntilFree() throws(CacheError) -> Bool {
        repeat {
            if try lock.isFree() { return true }
        } while try pause()
        return false
    }

    /// Whether the holder gets on, as far as can be told.
    private mutating func mayHope() throws(CacheError) -> Bool {
        guard let present = lock.control.sweepSteps else { return true }
        if lock.standstill.withLock({ $0 }) != present {
            let now = ContinuousClock.now
            guard let seen, seen.steps == present else {
                self.seen = (present, now, seen?.standstills ?? 0)
                return true
            }
            if now - seen.since < Self.longestStandstill { return true }
            self.seen?.standstills += 1
            if seen.standstills + 1 < Self.mostStandstills, lock.hasBusyHolder {
                self.seen?.since = now
                return true
            }
        }
        // Nobody gets on either where nobody is at it.
        if try lock.isFree() { return true }
        lock.standstill.withLock { $0 = present }
        isStuck = true
        return false
    }
}
