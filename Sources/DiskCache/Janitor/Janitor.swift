// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Maintains a directory for one open cache, on a dedicated thread.
///
/// An idle round, once a second, takes nine system calls: two to wait, six to check that the path still leads to the
/// directory and to its control file and that the limits are unchanged, and one to check whether any process has recorded
/// a sweep. If the cache holds values in memory, a round takes three to fifteen more, to measure memory pressure. Only
/// one process sweeps at a time: the one that holds the `janitor` lock, whose file also records the last sweep. If that
/// process dies, the next round in any other process finds the record unfinished and the lock free, and starts the sweep
/// over.
///
/// The thread holds this object, but no ``SharedCache``. Only closing waits for the thread, for one slice of a sweep at
/// most.
final class Janitor: Sendable {
    /// The time between checks, within which a replaced directory is detected and the work of a dead janitor is taken
    /// over.
    private static let second: Duration = .seconds(1)

    /// How long the thread waits while another process makes room, or if no room can be made.
    private static let courtesy: Duration = .milliseconds(20)

    private struct State {
        var isStopping = false
        var isRunning = false
        /// Whether a put has exceeded the high mark since this thread last made room.
        var isPressed = false
    }

    /// The state that is kept between rounds.
    private struct Rounds {
        var nextTick: ContinuousClock.Instant
        var nextSecond: ContinuousClock.Instant
        /// The granularity of accesses at the last check, in nanoseconds.
        var granularity: Int64
        /// The failure of the directory's configuration at the last check.
        var configurationFailure: CacheError?
        /// The last sweep's record, as this process read it, and when it was written.
        var sweep: (record: SweepRecord?, note: Timestamp?)
        /// The earliest start of the next sweep after a failed one.
        var notBefore = ContinuousClock.now
        var reported: CacheError?
        /// The directory's activity up to the end of this process's last sweep.
        var activity: CacheActivity?
        /// The time until which low limits are not reported again.
        var silentUntil = ContinuousClock.now
    }

    private let core: CacheCore
    private let schedule: JanitorSchedule
    private let state = Monitored(State())
    private let rounds: Locked<Rounds>
    private let session = Locked<StoreSession?>(nil)

    init(_ core: CacheCore) {
        self.core = core
        let interval = core.configuration.janitor.interval
        schedule = JanitorSchedule(interval: interval, jitter: .random(in: 0..<0.1))
        let granularity = core.store.accesses.granularity
        rounds = Locked(Rounds(nextTick: .now, nextSecond: .now + Self.second, granularity: granularity))
    }

    /// Joins the session and starts the thread.
    ///
    /// Failures are reported as events, and affect only the janitor's tasks: the cache works without a janitor.
    func begin() {
        join()
        guard core.configuration.janitor.isEnabled else { return }
        state.withLock { $0.isRunning = true }
        do throws(Errno) {
            try DetachedThread.start("diskcache") { self.run() }
        } catch {
            state.withLock { $0.isRunning = false }
            failed(CacheError(errno: error, "start a thread for", path: core.store.directory.path))
        }
    }

    /// Asks the thread to end, without waiting for that.
    func stop() {
        state.withLock { $0.isStopping = true }
        state.wakeAll()
    }

    /// Waits until the thread has ended; returns false if the deadline passed first.
    func waitUntilStopped(_ deadline: ContinuousClock.Instant) -> Bool {
        state.wait(until: deadline) { $0.isRunning ? nil : true } ?? false
    }

    private func join() {
        guard core.configuration.janitor.joinsSession else { return }
        do throws(CacheError) {
            let joined = try StoreSession.begin(in: core.store.directory)
            session.withLock { $0 = joined }
        } catch {
            failed(error)
        }
    }

    /// Reports a failure in the background; the task will be tried again.
    private func failed(_ error: CacheError) {
        core.events.send(.collectionFailed(error))
    }

    /// Ends the session; returns whether it was the last one of the directory.
    func leave() throws(CacheError) -> Bool {
        let left = session.withLock { $0 }
        return try left?.end() ?? false
    }

    // MARK: Thread

    private func run() {
        attend(core.store)
        while rest(for: tick) {
            lookAround()
            relieve()
            sweepIfDue()
        }
        state.withLock { $0.isRunning = false }
        state.wakeAll()
    }

    /// Waits until the time has passed or a put needs room; returns false if the thread must end.
    private func rest(for time: Duration) -> Bool {
        let mayGoOn = state.wait(until: .now + time) { state -> Bool? in
            if state.isStopping { return false }
            return state.isPressed ? true : nil
        }
        return mayGoOn ?? true
    }

    /// Rests within a sweep, and then does the tasks that are due; returns false if the thread must end.
    private func pause(_ time: Duration) -> Bool {
        if isStopped(within: time) { return false }
        lookAround()
        return true
    }

    private func isStopped(within time: Duration) -> Bool {
        state.wait(until: .now + time) { $0.isStopping ? true : nil } ?? false
    }

    private func lookAround() {
        let (isTick, isSecond) = rounds.withLock { rounds in
            let now = ContinuousClock.now
            let due = (now >= rounds.nextTick, now >= rounds.nextSecond)
            if due.0 { rounds.nextTick = now + tick }
            if due.1 { rounds.nextSecond = now + Self.second }
            return due
        }
        if isTick { core.flushAccesses() }
        if isSecond {
            core.relieve(SystemMemory.pressure)
            core.dropExpired()
            core.store.followControl()
            followConfiguration()
            followDirectory()
        }
    }

    /// The time between two recordings of accesses to values in memory: the granularity of accesses, limited to 50 ms to
    /// 1 s.
    private var tick: Duration {
        min(.seconds(1), max(.milliseconds(50), .nanoseconds(core.store.accesses.granularity)))
    }

    /// Applies changed limits; if the granularity of accesses is finer now, makes accesses to values in memory due
    /// sooner.
    private func followConfiguration() {
        let store = core.store
        store.followConfiguration()
        core.followLimits()
        let failure = store.configurationFailure
        let granularity = store.accesses.granularity
        let (isNew, before) = rounds.withLock { rounds in
            defer { (rounds.configurationFailure, rounds.granularity) = (failure, granularity) }
            return (rounds.configurationFailure != failure, rounds.granularity)
        }
        // A failure that recurs every second is reported only once.
        if isNew, let failure { core.events.send(.configurationFailed(failure)) }
        // Only if the granularity is noticeably finer, because this scans all values in memory.
        if granularity < before - before / 4 {
            core.memory?.advanceAccesses(to: core.coarseNow.advanced(byNanoseconds: granularity))
        }
    }

    // MARK: Room

    /// Makes puts that exceed the high mark wake this thread.
    private func attend(_ store: Store) {
        store.onPressure { [weak self] in self?.press() }
    }

    /// Whether a put needs room that this thread has not made yet.
    var isPressed: Bool { state.withLock { $0.isPressed } }

    private func press() {
        let isNew = state.withLock { state in
            defer { state.isPressed = true }
            return !state.isPressed
        }
        if isNew { state.wakeAll() }
    }

    /// If the usage exceeds the high mark, evicts down to the low mark, at full speed: writers may be waiting.
    private func relieve() {
        // Reset on every path: while the flag is set, the thread does not rest.
        defer { state.withLock { $0.isPressed = false } }
        let store = core.store
        guard store.directory.isWritable else { return }
        var relief = Relief.done
        do throws(CacheError) {
            while relief == .done, let excess = try store.overflow(), !isStopped(within: .zero) {
                relief = try store.relieve(excess, now: core.now, pace: hurried)
                lookAround()
            }
        } catch {
            relief = .impossible
            report(error)
        }
        // If another process is making room, it needs a moment; if nothing can be evicted, puts would wake this thread
        // again and again.
        if relief != .done { _ = isStopped(within: Self.courtesy) }
    }

    /// A pace without rests, which still lets the thread be stopped after each slice.
    private var hurried: SweepPace {
        var pace = SweepPace()
        pace.slice = .milliseconds(4)
        pace.pause = { _ in !self.isStopped(within: .zero) }
        return pace
    }

    /// Switches to the directory that the path refers to now.
    private func followDirectory() {
        do throws(CacheError) {
            if try core.store.directory.isCurrent() { return }
            try core.reopen()
            attend(core.store)
            join()
            rounds.withLock { rounds in
                rounds.sweep = (nil, nil)
                rounds.reported = nil
            }
        } catch {
            report(error)
        }
    }

    /// Reports a failure; if it recurs every second, only once.
    private func report(_ error: CacheError) {
        let isNew = rounds.withLock { rounds in
            defer { rounds.reported = error }
            return rounds.reported != error
        }
        if isNew { failed(error) }
    }

    // MARK: Sweep

    private func sweepIfDue() {
        let store = core.store
        guard store.directory.isWritable, looksDue(store) else { return }
        var request = SweepRequest()
        request.limits = store.configuration.limits
        if store.isPressed { request.partialLife = .zero }
        // Making room for waiting writers comes first: it stops the sweep, which starts over afterwards.
        request.pace = .sparing { [core] in
            self.pause($0) && core.store === store && !store.isPressed
        }
        let schedule = schedule
        do throws(CacheError) {
            let note = SweepRecord.lastNote(in: store.directory)
            let report = try Sweep.runIfDue(request, on: store, now: core.now) { last in
                schedule.isDue(after: last, noted: note, rules: store.rulesMade, at: .now)
            }
            if let report { swept(report) }
        } catch {
            rounds.withLock { $0.notBefore = .now + schedule.interval }
            report(error)
        }
    }

    /// Reports a finished sweep of this process; also reports if the directory's limits are too low for the working set.
    func swept(_ report: CollectionReport) {
        core.events.send(.collected(report))
        guard let present = CacheStatistics.Totals(of: core.store)?.activity else { return }
        let now = ContinuousClock.now
        let pressure: CacheActivity? = rounds.withLock { rounds in
            let recent = rounds.activity.map { present.since($0) }
            rounds.activity = present
            guard let recent, recent.isBelowWorkingSet, now >= rounds.silentUntil else { return nil }
            rounds.silentUntil = now + .seconds(3600)
            return recent
        }
        if let pressure { core.events.send(.limitsBelowWorkingSet(pressure)) }
    }

    /// Returns whether a sweep is due, as far as that can be determined without the lock.
    ///
    /// Takes one system call while nothing has changed.
    private func looksDue(_ store: Store) -> Bool {
        let note = SweepRecord.lastNote(in: store.directory)
        var (sweep, notBefore) = rounds.withLock { ($0.sweep, $0.notBefore) }
        if ContinuousClock.now < notBefore { return false }
        // If a file is written twice within one tick of the kernel's clock, its time stays the same, so an unfinished
        // record is always read again.
        if note == nil || note != sweep.note || sweep.record?.isUnfinished ?? false {
            sweep = (SweepRecord.last(in: store.directory), note)
            rounds.withLock { [sweep] in $0.sweep = sweep }
        }
        return schedule.isDue(after: sweep.record, noted: note, rules: store.rulesMade, at: .now)
    }
}
