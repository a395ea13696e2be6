// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import Platform

/// Sends the changes in the outbox to the servers, on a separate thread.
///
/// One process of the machine sends at a time; it holds a lock that is released if the process dies.
///
/// For each changed key, the sender makes the servers match the disk: it puts the value on disk, or a removal if the disk
/// has none. Servers keep the entry with the later version. So a change may be sent twice, and changes may be sent in any
/// order. The thread keeps this object alive; this object does not keep a cache alive.
final class OutboxSender: Sendable {
    /// A wrong entry that must be removed from a server.
    struct Repair: Sendable {
        let server: RemoteServer
        let key: Digest
    }

    /// A value that a later level had and an earlier level lacked, to be put into the earlier level.
    struct Fill: Sendable {
        let level: Int
        let key: Digest
        let content: Digest
    }

    private struct State {
        /// Whether this sender makes writers record their changes.
        var records = false
        /// When the directory's configuration is looked at again.
        var nextLook = ContinuousClock.now
        var isRunning = false
        /// Whether to start a round at once: a record was appended, or a repair or fill is pending.
        var isWoken = false
        /// When the thread must end; nil to continue.
        var end: ContinuousClock.Instant?
        var repairs: [Repair] = []
        var fills: [Fill] = []
    }

    /// The time between two checks for records of processes that have no sender.
    private static let second: Duration = .seconds(1)
    /// The time between two attempts while another process sends.
    private static let short: Duration = .milliseconds(50)
    /// The longest time between two passes over the pending records.
    private static let longestRest: Duration = .seconds(2)
    /// The time limit of a request in the background.
    private static let patience: Duration = .seconds(10)
    /// How long after a request without an answer a server may still carry it out.
    static let lateness: Duration = .seconds(300)
    /// The longest time that closing waits for the thread.
    private static let farewell: Duration = .seconds(2)
    /// The maximum number of pending repairs, and of pending fills; further ones are dropped.
    private static let mostErrands = 100
    private static let lockName = Digest(ofKey: "remote sender", in: .upkeep)

    let levels: [RemoteLevel]
    let configuration: CacheConfiguration.Remote
    let host: RemoteContext
    let view: OutboxView
    private let state = Monitored(State())
    /// What the thread has done so far, for tests.
    struct Work {
        var rounds = 0
        /// Passes over all pending records.
        var passes = 0
    }

    let work = Locked(Work())
    /// The levels that already have a change that other levels still lack, by the change's record.
    let told = Locked<[OutboxRecord.Identity: Set<Int>]>([:])

    init(
        _ levels: [RemoteLevel],
        _ configuration: CacheConfiguration.Remote,
        _ host: RemoteContext,
        _ view: OutboxView,
        isConfiguredInDirectory: Bool
    ) {
        self.isConfiguredInDirectory = isConfiguredInDirectory
        self.levels = levels
        self.configuration = configuration
        self.host = host
        self.view = view
    }

    var writes: Bool { configuration.mode == .readWrite }
    /// Whether the configuration is the directory's, and not this process's own.
    private let isConfiguredInDirectory: Bool

    /// Makes all writers record their changes, and starts the thread.
    ///
    /// If the thread can't be created, other processes send the changes.
    func begin() {
        announce(host.store())
        state.withLock { $0.isRunning = true }
        do throws(Errno) {
            try DetachedThread.start("diskcache-send") { self.run() }
        } catch {
            state.withLock { $0.isRunning = false }
        }
    }

    /// Ends the thread after it has sent what it can before `deadline`, and waits for it.
    func close(until deadline: ContinuousClock.Instant) {
        let end = min(deadline, ContinuousClock.now + Self.farewell)
        state.withLock { $0.end = $0.end ?? end }
        state.wakeAll()
        _ = state.wait(until: end) { $0.isRunning ? nil : true }
    }

    /// Removes a wrong value from a server, in the background.
    func repair(_ repair: Repair) {
        guard writes else { return }
        state.withLock { state in
            if state.repairs.count < Self.mostErrands { state.repairs.append(repair) }
            state.isWoken = true
        }
        state.wakeAll()
    }

    /// Puts a value that is now on disk into a level that lacked it, in the background.
    func fill(_ fill: Fill) {
        guard writes else { return }
        state.withLock { state in
            if state.fills.count < Self.mostErrands { state.fills.append(fill) }
            state.isWoken = true
        }
        state.wakeAll()
    }

    // MARK: Thread

    private func run() {
        var pause = Duration.zero
        // The time at which the next pass is due.
        var nextPass = ContinuousClock.now
        while rest(for: pause) { pause = round(&nextPass) }
        // A last attempt; the remaining changes stay on disk for the next process.
        nextPass = .now
        if writes { _ = round(&nextPass) }
        host.store().outbox.onAppend(nil)
        state.withLock { $0.isRunning = false }
        state.wakeAll()
    }

    /// Waits until the time has passed or the thread is woken; returns false if the thread must end.
    private func rest(for time: Duration) -> Bool {
        let mayGoOn = state.wait(until: .now + time) { state -> Bool? in
            if state.end != nil { return false }
            guard state.isWoken else { return nil }
            state.isWoken = false
            return true
        }
        return mayGoOn ?? true
    }

    private func wake() {
        state.withLock { $0.isWoken = true }
        state.wakeAll()
    }

    /// When the thread must end; nil if it need not end yet.
    private var end: ContinuousClock.Instant? { state.withLock { $0.end } }

    var isOver: Bool { end.map { $0 <= ContinuousClock.now } ?? false }

    /// Registers this sender with the directory; repeated in each round, because the directory or the control file may
    /// have been replaced.
    private func announce(_ store: Store) {
        let records = writes && mayRecord(in: store)
        let hasRecorded = state.withLock { exchange(&$0.records, with: records) }
        if records {
            store.noteChanges(true)
        } else {
            // A process that only reads does not decide for the others: their senders may write.
            if hasRecorded { store.noteChanges(false) }
            store.useVersions()
        }
        store.outbox.onAppend { [weak self] in self?.wake() }
    }

    /// Returns whether changes are to be recorded: the servers are this process's own, or the directory's configuration
    /// does not say that changes are no longer sent.
    ///
    /// Looks at the configuration at most ten times a second, as each put may start a round.
    private func mayRecord(in store: Store) -> Bool {
        guard isConfiguredInDirectory else { return true }
        let known = state.withLock { state -> Bool? in
            if ContinuousClock.now < state.nextLook { return state.records }
            state.nextLook = .now + Self.short * 2
            return nil
        }
        if let known { return known }
        store.followConfiguration()
        // Without its file the directory was replaced: this process still uses the servers that were configured in it.
        guard let json = store.configuration.remote else { return !store.isConfigured }
        do throws(CacheError) {
            let present = try CacheConfiguration.Remote(json: json)
            return present.isActive && present.mode == .readWrite
        } catch {
            // As for the limits, an editing mistake changes nothing.
            return state.withLock { $0.records }
        }
    }

    /// Does the pending work; returns how long to rest afterward.
    ///
    /// A pass covers all pending records, up to 65,536. There is no pass while all breakers are open. If a pass could not
    /// send everything, the next one starts after 50 times its duration, but at most two seconds.
    private func round(_ nextPass: inout ContinuousClock.Instant) -> Duration {
        let store = host.store()
        work.withLock { $0.rounds += 1 }
        announce(store)
        for repair in state.withLock({ exchange(&$0.repairs, with: []) }) { remove(repair, store) }
        follow(store)
        let hasFills = state.withLock { !$0.fills.isEmpty }
        let hasWork = view.hasWork || !endedDoubts.isEmpty
        // Also if nothing can be sent: every change is appended to the file, which would grow to its limit.
        let isToBeTidied = view.needsCompaction || view.isToBeCarriedOver
        guard writes && (hasWork || hasFills) || isToBeTidied else { return Self.second }
        let mayPass = ContinuousClock.now >= nextPass && mayTellAnybody(store)
        guard mayPass || hasFills || isToBeTidied else { return Self.short * 4 }
        do throws(CacheError) {
            let lock = NamedLock(Self.lockName, permits: 1, in: store.directory)
            // Another process sends now, including the records of this process.
            guard let permit = try lock.attempt() else { return Self.short }
            defer { permit.release() }
            carryOver(store)
            var isDone = !writes || !hasWork
            if mayPass {
                let begin = ContinuousClock.now
                isDone = sendAll(store)
                if !isDone { nextPass = .now + min((.now - begin) * 50, Self.longestRest) }
            }
            for fill in state.withLock({ exchange(&$0.fills, with: []) }) { send(fill, store) }
            compact(store)
            return isDone ? Self.second : Self.short * 4
        } catch {
            return Self.second
        }
    }

    /// Returns whether any server's breakers allow a change.
    private func mayTellAnybody(_ store: Store) -> Bool {
        levels.contains { level in
            level.servers.contains { $0.mayBeTold(.remove, in: store.control) }
        }
    }

    /// The keys whose doubts have ended, with the ends in milliseconds since 1970.
    var endedDoubts: [Digest: Int64] { view.doubts(endedBy: host.now(), longest: Self.lateness) }

    private func remove(_ repair: Repair, _ store: Store) {
        if isOver { return }
        do throws(RemoteFailure) {
            try repair.server.change(in: store, until: deadline) { () throws(RemoteFailure) in
                try repair.server.client.remove(repair.key, until: deadline)
            }
        } catch {
            // The wrong value stays on the server and counts as a miss; the next lookup finds it again.
            return
        }
    }

    var deadline: ContinuousClock.Instant {
        let usual = ContinuousClock.now + Self.patience
        return end.map { min($0, usual) } ?? usual
    }

    /// Reads the new records; returns false if that fails.
    ///
    /// If changes were refused for lack of room, they are not sent.
    @discardableResult
    func follow(_ store: Store) -> Bool {
        do throws(Errno) {
            let refused = try view.follow(store.outbox)
            if refused > 0 { store.counters.add(.remoteDropped, refused) }
            return true
        } catch {
            // The next round tries again.
            return false
        }
    }

    private func compact(_ store: Store) {
        follow(store)
        guard let (records, offset) = view.replacement() else { return }
        replace(records, offset, store)
    }

    /// Completes a replacement of the file whose process was killed.
    private func carryOver(_ store: Store) {
        guard view.isToBeCarriedOver else { return }
        // If this fails, both files are read until a later round succeeds.
        _ = try? store.outbox.carryOver()
        follow(store)
    }

    private func replace(_ records: [UInt8], _ offset: Int64, _ store: Store) {
        if view.isToBeCarriedOver { return }
        // If this fails, a later round replaces the file.
        _ = try? store.outbox.replace(by: records, readUpTo: offset)
        follow(store)
    }
}
