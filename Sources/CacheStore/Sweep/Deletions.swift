// SPDX-License-Identifier: Apache-2.0

import Platform

/// An entry or an object that is to be deleted, as it was seen, and why.
struct Removal: Sendable {
    let digest: Digest
    /// Of an object why the last entry that named it was deleted; ``RemovalReason/orphan`` where none was.
    let reason: RemovalReason
    let allocatedSize: AllocatedSize
    /// nil for an object.
    var entry: SeenEntry?
    /// The lower half of its inode number.
    var inode: UInt32 = 0
    /// The place of an entry among the candidates; nil where it is none of them.
    var place: UInt32?

    init(_ entry: SeenEntry, _ reason: RemovalReason, at place: UInt32? = nil) {
        digest = entry.key
        self.reason = reason
        allocatedSize = entry.allocatedSize
        self.entry = entry
        self.place = place
    }

    init(object digest: Digest, _ size: AllocatedSize, freed reason: RemovalReason?, inode: UInt32 = 0) {
        self.digest = digest
        self.reason = reason ?? .orphan
        allocatedSize = size
        self.inode = inode
    }

    var tree: Tree { entry == nil ? .objects : .entries }

    /// What it adds to the tally of its reason: an object counts with the entries that named it, if any did.
    var tally: CollectionReport.Tally {
        CollectionReport.Tally(count: entry != nil || reason == .orphan ? 1 : 0, bytes: allocatedSize.bytes)
    }
}

extension [RemovalReason: CollectionReport.Tally] {
    /// Adds what `removals` come to; a run of one reason, as most are, is looked up once.
    mutating func add(_ removals: some Sequence<Removal>) {
        var run: (reason: RemovalReason, tally: CollectionReport.Tally)?
        for removal in removals {
            if let ended = run, ended.reason != removal.reason {
                self[ended.reason, default: CollectionReport.Tally()] += ended.tally
                run = nil
            }
            var tally = run?.tally ?? CollectionReport.Tally()
            tally += removal.tally
            run = (removal.reason, tally)
        }
        if let run { self[run.reason, default: CollectionReport.Tally()] += run.tally }
    }
}

/// How a deletion ended.
enum DeletionOutcome: Sendable {
    case deleted
    /// Somebody has used or changed it since it was seen.
    case spared
    /// It is guarded by a stripe that was not to be had.
    case skipped
    /// The kernel would not have it looked at or deleted.
    case refused(path: String)

    var isDeletion: Bool {
        if case .deleted = self { true } else { false }
    }
}

/// How sweeps and evictions from the list delete, and where they account for it; their threads share one.
///
/// Everything is looked at again under its stripe, as others have been at work since it was seen.
struct Deletions: Sendable {
    private struct State {
        /// Stripes that were not to be had once: what they guard is left alone, so that the wait for somebody
        /// who is stopped is paid once and not for each thing that he keeps.
        var skipped: [Tree: Set<Int>] = [:]
        /// The last use of the most recently used entry that was evicted for want of room.
        var newestEvicted: Timestamp?
    }

    let parts: StoreParts
    let request: SweepRequest
    /// By the caller's clock.
    let now: Timestamp
    private let state = Locked.Box(State())
    /// By which it measures how long it holds a stripe.
    var instant: @Sendable () -> ContinuousClock.Instant = { .now }

    // MARK: Stripes

    /// How long to wait for each other stripe once one was waited for in vain.
    ///
    /// Twice as long as until a waiter asks for it (``FileLock/askAfter``). So 64 that a stopped process holds cost little
    /// more than one.
    private static let laterStripePatience: Duration = .milliseconds(4)

    /// How long one stripe is held, at full pace, to delete one thing after the other.
    ///
    /// In it about 50 go, so that the lock itself (2 µs) is a hundredth of the cost. Then other stripes have their
    /// turn, so that a writer, who asks again every 0.5 ms, gets it: he waits no longer than for a single deletion
    /// on a busy disk.
    private static let longestHold: Duration = .milliseconds(1)

    /// How long to wait for a stripe now, with so many `skipped` that were not noted yet.
    func patience(_ pacer: SweepPacer, after skipped: Int = 0) -> Duration {
        let isHindered = skipped > 0 || state.value.withLock { $0.skipped.values.contains { !$0.isEmpty } }
        return min(isHindered ? Self.laterStripePatience : request.stripePatience, pacer.rest)
    }

    /// Leaves alone what these stripes guard, from now on.
    func skip(_ stripes: Set<Int>, _ tree: Tree) {
        state.value.withLock { $0.skipped[tree, default: []].formUnion(stripes) }
    }

    /// Stripes whose lock was not to be had.
    func skipped(_ tree: Tree) -> Set<Int> {
        state.value.withLock { $0.skipped[tree] ?? [] }
    }

    /// Runs `delete` for each of what is in one tree and guarded by `stripe`, while that is held exclusively (false: it
    /// was spared), and accounts for what is gone.
    ///
    /// The stripe is given back, and taken again, where it has been held long enough and where a rest is due.
    /// Nothing else is waited for while it is held.
    ///
    /// There are fewer outcomes than removals where time ran out or something failed that concerns all.
    func run(
        _ removals: [Removal],
        stripe: Int,
        _ pacer: inout SweepPacer,
        _ delete: (Removal) throws(CacheError) -> Bool
    ) -> (outcomes: [DeletionOutcome], failure: CacheError?) {
        guard let tree = removals.first?.tree else { return ([], nil) }
        var outcomes: [DeletionOutcome] = []
        outcomes.reserveCapacity(removals.count)
        defer { account(for: zip(removals, outcomes).filter { $0.1.isDeletion }.map(\.0)) }
        while outcomes.count < removals.count {
            if !outcomes.isEmpty, !pacer.mayGoOn() { break }
            if skipped(tree).contains(stripe) {
                outcomes += repeatElement(.skipped, count: removals.count - outcomes.count)
                break
            }
            do throws(CacheError) {
                try parts.stripes(tree).withLock(.exclusive, stripe: stripe, patience: patience(pacer)) {
                    () throws(CacheError) in
                    let end = instant() + (pacer.isSparing ? .zero : Self.longestHold)
                    repeat {
                        outcomes.append(try outcome(removals[outcomes.count], delete))
                    } while outcomes.count < removals.count && instant() < end && !pacer.isOver
                }
            } catch {
                guard error.code == .busy else { return (outcomes, error) }
                // To wait in vain is to get on.
                parts.control.noteSweepStep()
                skip([stripe], tree)
            }
        }
        return (outcomes, nil)
    }

    private func outcome(
        _ removal: Removal,
        _ delete: (Removal) throws(CacheError) -> Bool
    ) throws(CacheError) -> DeletionOutcome {
        do throws(CacheError) {
            return try delete(removal) ? .deleted : .spared
        } catch {
            guard error.concernsOneFile else { throw error }
            return .refused(path: parts.directory.relativePath(error))
        }
    }

    // MARK: Accounting

    /// Accounts for what was deleted: in the usage, the counters, the keys that were evicted lately, and the log.
    ///
    /// Of a dry run only the ``horizon``.
    private func account(for removals: [Removal]) {
        let evicted = removals.lazy.compactMap { $0.reason.isEviction ? $0.entry : nil }
        if let newest = evicted.map(\.lastUse).max() {
            state.value.withLock { $0.newestEvicted = max($0.newestEvicted ?? .distantPast, newest) }
        }
        if request.isDryRun || removals.isEmpty { return }
        let bytes = removals.reduce(0) { $0 + $1.allocatedSize.bytes }
        parts.control.addUsage(bytes: -bytes, entries: -removals.count { $0.entry != nil })
        var tallies: [RemovalReason: CollectionReport.Tally] = [:]
        tallies.add(removals)
        for (reason, tally) in tallies where tally.count > 0 {
            parts.counters.add(StoreCounters.Event(reason), tally.count)
        }
        var young = 0
        for entry in evicted {
            parts.control.noteEviction(of: entry.key)
            if now - entry.lastUse < EvictedKeys.youth { young += 1 }
        }
        if young > 0 { parts.counters.add(.evictedYoung, young) }
        parts.log?.append(
            removals.lazy.filter { $0.entry != nil }.map { (removal) -> (LoggedKey, LoggedRemoval.Cause) in
                // To who asks why a key is gone it is no collection that has removed it.
                let cause: LoggedRemoval.Cause =
                    removal.reason == .cleared ? .cleared : .collected(removal.reason)
                return (LoggedKey(digest: removal.digest, name: nil), cause)
            }
        )
    }

    /// For how long the most recently used entry that was evicted for want of room had not been used; nil where none
    /// was.
    var horizon: Duration? {
        state.value.withLock { $0.newestEvicted }.map { max(.zero, now - $0) }
    }
}

extension CacheError {
    /// Whether it was about one file, and others may well be as they should.
    var concernsOneFile: Bool { cause?.concernsOneFile ?? false }
}

extension StoreDirectory {
    /// Where it happened, below the cache directory.
    func relativePath(_ error: CacheError) -> String {
        String((error.path ?? path).dropFirst(path.count + 1))
    }
}
