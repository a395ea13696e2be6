// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Looks after a directory for one open cache, on a thread of its own.
///
/// An idle round, once a second, takes nine system calls: two to wait, six to check that the path still leads
/// to the directory and to its control file and that the limits are the same, and one to see whether any
/// process has noted a sweep. The cache's own duties come on top: with anything in memory, three to fifteen to
/// see how short memory is. One process sweeps at a time, elected by the `janitor` lock, whose file also says
/// when the last sweep was. If that process dies, the next round of any other finds its note unfinished and the
/// lock free, and starts over.
///
/// The thread holds this object, and this holds no ``SharedCache``. Only closing waits for the thread, for a
/// slice of a sweep at most.
final class Janitor: Sendable {
    /// Time between looks around: within it a replaced directory is noticed, and a dead janitor's work taken over.
    private static let second: Duration = .seconds(1)

    /// How long the thread leaves the work to another process that is making room.
    private static let courtesy: Duration = .milliseconds(20)

    private struct State {
        var isStopping = false
        var isRunning = false
        /// A put has passed the high mark.
        var isPressed = false
    }

    /// What is known from one round to the next.
    private struct Rounds {
        var nextTick: ContinuousClock.Instant
        var nextSecond: ContinuousClock.Instant
        /// The granularity of accesses when last looked at, ns.
        var granularity: Int64
        /// What was wrong with the directory's configuration when last looked at.
        var configurationFailure: CacheError?
        /// The last sweep as far as it was read, and when it was written.
        var sweep: (record: SweepRecord?, note: Timestamp?)
        /// When the next sweep may begin after one that failed.
        var notBefore = ContinuousClock.now
        var reported: CacheError?
        /// What was done by the end of the last sweep of this process, and until when not to report it.
        var activity: CacheActivity?
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
    /// Failures are reported, and cost only what the janitor does: the cache works without it.
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

    /// Ends the thread soon; never waits.
    func stop() {
        state.withLock { $0.isStopping = true }
        state.wakeAll()
    }

    /// Waits until the thread is done; false if the deadline passed first.
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

    /// Reports that something in the background has failed, which is tried again.
    private func failed(_ error: CacheError) {
        core.events.send(.collectionFailed(error))
    }

    /// Leaves the session; true if it was the last one in it.
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

    /// Waits until the time is over or a put needs room; false if the thread must end.
    private func rest(for time: Duration) -> Bool {
        let mayGoOn = state.wait(until: .now + time) { state -> Bool? in
            if state.isStopping { return false }
            return state.isPressed ? true : nil
        }
        return mayGoOn ?? true
    }

    /// Rests within a sweep, does what is due meanwhile, and returns whether to continue.
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

    /// The time between two recordings of uses in memory: as long as a use may go unrecorded, at most a second
    /// and at least a twentieth of one.
    private var tick: Duration {
        min(.seconds(1), max(.milliseconds(50), .nanoseconds(core.store.accesses.granularity)))
    }

    /// Follows changed limits, and has uses in memory recorded sooner if entries are evicted sooner.
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
        // One that repeats every second is reported only once.
        if isNew, let failure { core.events.send(.configurationFailed(failure)) }
        // Noticeably finer than what values in memory were held by: it takes a walk through all of them.
        if granularity < before - before / 4 {
            core.memory?.advanceAccesses(to: core.coarseNow.advanced(byNanoseconds: granularity))
        }
    }

    // MARK: Room

    /// Has puts that pass the high mark wake this thread.
    private func attend(_ store: Store) {
        store.room.onPressure { [weak self] in self?.press() }
    }

    /// Whether a put needs room that this thread has not seen to yet.
    var isPressed: Bool { state.withLock { $0.isPressed } }

    private func press() {
        let isNew = state.withLock { state in
            defer { state.isPressed = true }
            return !state.isPressed
        }
        if isNew { state.wakeAll() }
    }

    /// Evicts down to the low mark if the high one is passed, at full pace: writers may be waiting.
    private func relieve() {
        // However this ends: while the flag stays, the thread does not rest.
        defer { state.withLock { $0.isPressed = false } }
        let store = core.store
        guard store.directory.isWritable else { return }
        var relief = Relief.done
        do throws(CacheError) {
            while relief == .done, let excess = try store.room.overflow(), !isStopped(within: .zero) {
                relief = try store.room.relieve(excess, now: core.now, pace: hurried)
                lookAround()
            }
        } catch {
            relief = .impossible
            report(error)
        }
        // Another process that makes room needs a moment; and if nothing can go, puts would only keep asking.
        if relief != .done { _ = isStopped(within: Self.courtesy) }
    }

    /// Without rests, but it can still be ended at any moment.
    private var hurried: SweepPace {
        var pace = SweepPace()
        pace.slice = .milliseconds(4)
        pace.pause = { _ in !self.isStopped(within: .zero) }
        return pace
    }

    /// Continues in the directory that the path leads to now.
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

    /// Reports a failure that repeats every second only once.
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
        if store.room.isPressed { request.partialLife = .zero }
        // What writers wait for comes first; the sweep starts over after it.
        request.pace = .sparing { [core] in
            self.pause($0) && core.store === store && !store.room.isPressed
        }
        let schedule = schedule
        do throws(CacheError) {
            let note = SweepRecord.lastNote(in: store.directory)
            let report = try Sweep.runIfDue(request, on: store.parts, now: core.now) { last in
                schedule.isDue(after: last, noted: note, rules: store.rulesMade, at: .now)
            }
            if let report { swept(report) }
        } catch {
            rounds.withLock { $0.notBefore = .now + schedule.interval }
            report(error)
        }
    }

    /// Reports a sweep of this process that has ended, and if the directory's limits are too low for what is in
    /// use.
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

    /// Whether a sweep is due as far as can be told without the lock: one system call while nothing has
    /// changed.
    private func looksDue(_ store: Store) -> Bool {
        let note = SweepRecord.lastNote(in: store.directory)
        var (sweep, notBefore) = rounds.withLock { ($0.sweep, $0.notBefore) }
        if ContinuousClock.now < notBefore { return false }
        // Written twice within one tick of the kernel's clock, it bears the same time: what is known to be
        // unfinished is read again.
        if note == nil || note != sweep.note || sweep.record?.isUnfinished ?? false {
            sweep = (SweepRecord.last(in: store.directory), note)
            rounds.withLock { [sweep] in $0.sweep = sweep }
        }
        return schedule.isDue(after: sweep.record, noted: note, rules: store.rulesMade, at: .now)
    }
}
