// SPDX-License-Identifier: Apache-2.0

import Platform

/// The lock of the process that sweeps or evicts.
///
/// The holder writes its process number into the control file and counts its steps there, so that other processes can see
/// whether it makes progress.
package final class JanitorLock: Sendable {
    fileprivate let control: Control
    /// The step count at which the holder was found to make no progress.
    fileprivate let standstill = Locked<UInt64?>(nil)

    init(in control: Control) {
        self.control = control
    }

    /// Acquires the lock; nil if it is held.
    ///
    /// Three system calls if another process holds it.
    func take() throws(CacheError) -> LockFile? {
        guard let lock = try attempt() else { return nil }
        control.noteSweepHolder()
        return lock
    }

    /// Returns whether the lock is free at this moment.
    func isFree() throws(CacheError) -> Bool {
        guard let lock = try attempt() else { return false }
        lock.release()
        return true
    }

    private func attempt() throws(CacheError) -> LockFile? {
        try control.directory.lock(StoreLayout.janitorLock, patience: .zero)
    }

    var path: String { "\(control.directory.path)/\(StoreLayout.locks)/\(StoreLayout.janitorLock)" }

    /// Returns whether the process with that number, in this process's namespace, holds the lock; false if that is unknown.
    func isHeld(by process: Int32) -> Bool {
        control.directory.holders(ofLock: StoreLayout.janitorLock).contains(process)
    }

    /// The part of an error message that names the process that holds the lock.
    var hindrance: String {
        // The recorded process may have ended long ago.
        guard let process = control.sweepHolder, isHeld(by: process) else {
            return "the process that evicts makes no progress: it may be stopped"
        }
        return
            "process \(process), which evicts, makes no progress: check whether it is stopped (`ps \(process)`)"
    }

    /// Whether the holder is known to wait for a processor or a disk, and is not stopped.
    fileprivate var hasBusyHolder: Bool { control.sweepHolder.map { ProcFiles.isBusy($0) } ?? false }
}

/// A wait for the holder of the `janitor` lock, or the time limit for making space without it.
///
/// The wait lasts for the patience at most, and ends early if the holder takes no step for ``longestStandstill``. So a
/// holder that is stopped or hangs costs each process that time only once: a later wait that finds the same step count ends
/// at once. A holder that waits for a processor or a disk gets ten times as long. If no control file is mapped, no steps
/// are counted, and the wait lasts for the whole patience.
struct JanitorWait {
    /// The longest time without a step of the holder.
    ///
    /// A sweep counts a step every few files, and waits for a stripe half as long at most. So a whole call takes less than
    /// a second.
    static let longestStandstill: Duration = .milliseconds(800)
    /// How many times as long to wait for a holder that waits for a processor or a disk.
    private static let mostStandstills = 10
    /// How long to wait before `whileWaiting` is called.
    ///
    /// Most waits are shorter, and the work that other processes do when they no longer wait for this one may cost more.
    private static let courtesy: Duration = .milliseconds(100)

    let patience: Duration
    private let lock: JanitorLock
    /// Called once if the wait is longer than ``courtesy``.
    private var whileWaiting: (() -> Void)?
    private var start: ContinuousClock.Instant?
    /// The holder's step count when last seen, the time since which it has not changed, and how often that took too long.
    private var seen: (steps: UInt64, since: ContinuousClock.Instant, standstills: Int)?
    private var backoff = Backoff()
    /// Whether the wait has ended because the holder made no progress.
    private var isStuck = false
    private var hasTriedInVain = false

    init(for lock: JanitorLock, patience: Duration, whileWaiting: (() -> Void)? = nil) {
        self.lock = lock
        // Limited, so that it can be added to any instant.
        self.patience = .nanoseconds(max(0, patience.saturatingNanoseconds))
        self.whileWaiting = whileWaiting
    }

    /// The time since ``begin()``.
    var elapsed: Duration { start.map { .now - $0 } ?? .zero }

    /// Whether the patience has run out.
    var isOver: Bool { elapsed >= patience }

    /// The longest time for making space.
    ///
    /// It is at least 0.8 s: otherwise callers without patience would never make space.
    var effort: Duration { max(patience, Self.longestStandstill) }

    /// The end of ``effort``.
    var deadline: ContinuousClock.Instant { (start ?? .now) + effort }

    /// The part of an error message that names the process that made no progress; nil if that was not the reason.
    var hindrance: String? { isStuck ? lock.hindrance : nil }

    /// Returns true the first time: the caller may try once more although nothing was freed.
    mutating func mayTryInVain() -> Bool {
        defer { hasTriedInVain = true }
        return !hasTriedInVain
    }

    /// Starts the time measurement, unless it has started already.
    mutating func begin() {
        if start == nil { start = .now }
    }

    /// Waits a moment for the holder; returns false if the wait is over.
    mutating func pause() throws(CacheError) -> Bool {
        begin()
        if isOver { return false }
        guard try mayHope() else { return false }
        if elapsed > Self.courtesy { whileWaiting.take()?() }
        sleepThread(for: backoff.next())
        return true
    }

    /// Waits until the lock is free; returns false if that takes too long.
    mutating func pauseUntilFree() throws(CacheError) -> Bool {
        repeat {
            if try lock.isFree() { return true }
        } while try pause()
        return false
    }

    /// Returns whether the holder may be making progress.
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
        // The step count does not change either if no process holds the lock.
        if try lock.isFree() { return true }
        lock.standstill.withLock { $0 = present }
        isStuck = true
        return false
    }
}
