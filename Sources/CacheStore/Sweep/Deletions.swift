// SPDX-License-Identifier: Apache-2.0

import Platform

/// An entry or an object to delete, as the sweep has seen it, and the reason.
struct Removal: Sendable {
    let digest: Digest
    /// Why the file is deleted.
    ///
    /// For an object: the reason why the last entry that named it was deleted, or ``RemovalReason/orphan``.
    let reason: RemovalReason
    let allocatedSize: AllocatedSize
    /// The entry; nil for an object.
    var entry: SeenEntry?
    /// The lower half of the object's inode number; 0 if it is not known, and for an entry.
    var inode: UInt32 = 0
    /// The index of the entry among the candidates; nil if it is not a candidate.
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

    /// The amount that this removal adds to the tally of its reason.
    ///
    /// An object counts as a separate removal only if no entry named it.
    var tally: CollectionReport.Tally {
        CollectionReport.Tally(count: entry != nil || reason == .orphan ? 1 : 0, bytes: allocatedSize.bytes)
    }
}

extension [RemovalReason: CollectionReport.Tally] {
    /// Adds the tallies of `removals`.
    ///
    /// Consecutive removals for the same reason cost one dictionary lookup.
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
    /// The file was used or changed after the sweep had seen it.
    case spared
    /// The lock of its stripe could not be acquired.
    case skipped
    /// The kernel refused to stat or to delete it.
    case refused(path: String)

    var isDeletion: Bool {
        if case .deleted = self { true } else { false }
    }
}

/// The deletions of a sweep or of an eviction from the list, and their accounting.
///
/// All threads of a sweep share one instance.
///
/// Each file is checked again under its stripe before it is deleted, because other processes may have used it.
struct Deletions: Sendable {
    private struct State {
        /// Stripes whose lock could not be acquired in time.
        ///
        /// Their files are left alone, so that a stopped process costs one wait for each stripe that it holds, and not
        /// one for each file.
        var skipped: [Tree: Set<Int>] = [:]
        /// The last use of the most recently used entry that was evicted.
        var newestEvicted: Timestamp?
    }

    let store: Store
    let request: SweepRequest
    /// The time of the sweep, by the caller's clock.
    let now: Timestamp
    private let state = Locked.Box(State())
    /// The clock that measures how long a stripe is held.
    var instant: @Sendable () -> ContinuousClock.Instant = { .now }

    // MARK: Stripes

    /// How long to wait for a stripe after a wait for another stripe has failed.
    ///
    /// Twice the time after which a waiter asks the holders for the lock (``FileLock/askAfter``). So waiting for 64
    /// stripes that a stopped process holds costs little more than waiting for one.
    private static let laterStripePatience: Duration = .milliseconds(4)

    /// How long a stripe is held at full pace for several deletions.
    ///
    /// About 50 files are deleted in that time, so the lock itself (2 µs) is a hundredth of the cost. Then the stripe is
    /// released, so that a waiting writer, which tries again every 0.5 ms, acquires it. The writer waits no longer than
    /// for a single deletion on a busy disk.
    private static let longestHold: Duration = .milliseconds(1)

    /// Returns how long to wait for the next stripe.
    ///
    /// - Parameter skipped: the number of stripes that could not be acquired and were not recorded by ``skip(_:_:)`` yet.
    func patience(_ pacer: SweepPacer, after skipped: Int = 0) -> Duration {
        let isHindered = skipped > 0 || state.value.withLock { $0.skipped.values.contains { !$0.isEmpty } }
        return min(isHindered ? Self.laterStripePatience : request.stripePatience, pacer.rest)
    }

    /// Leaves the files of these stripes alone from now on.
    func skip(_ stripes: Set<Int>, _ tree: Tree) {
        state.value.withLock { $0.skipped[tree, default: []].formUnion(stripes) }
    }

    /// Returns the stripes whose locks could not be acquired.
    func skipped(_ tree: Tree) -> Set<Int> {
        state.value.withLock { $0.skipped[tree] ?? [] }
    }

    /// Deletes files of one tree and one stripe, while it holds the stripe exclusively, and accounts for them.
    ///
    /// The stripe is released and acquired again after ``longestHold``, and for a rest. While the stripe is held, this
    /// function waits for nothing else.
    ///
    /// - Parameter delete: returns false if the file was spared.
    /// - Returns: fewer outcomes than removals if the time ran out, or if there was an error that concerns all files.
    func run(
        _ removals: [Removal],
        stripe: Int,
        _ pacer: inout SweepPacer,
        _ delete: (Removal, borrowing StripeLock) throws(CacheError) -> Bool
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
                let lock = try store.stripes(tree).lock(.exclusive, stripe: stripe, patience: patience(pacer))
                let end = instant() + (pacer.isSparing ? .zero : Self.longestHold)
                repeat {
                    outcomes.append(try outcome(removals[outcomes.count], lock, delete))
                } while outcomes.count < removals.count && instant() < end && !pacer.isOver
                lock.release()
            } catch {
                guard error.code == .busy else { return (outcomes, error) }
                // A failed wait counts as progress, too.
                store.control.noteSweepStep()
                skip([stripe], tree)
            }
        }
        return (outcomes, nil)
    }

    private func outcome(
        _ removal: Removal,
        _ lock: borrowing StripeLock,
        _ delete: (Removal, borrowing StripeLock) throws(CacheError) -> Bool
    ) throws(CacheError) -> DeletionOutcome {
        do throws(CacheError) {
            return try delete(removal, lock) ? .deleted : .spared
        } catch {
            guard error.concernsOneFile else { throw error }
            return .refused(path: store.directory.relativePath(error))
        }
    }

    // MARK: Accounting

    /// Updates the usage, the counters, the record of recently evicted keys, and the log.
    ///
    /// A dry run updates only the ``horizon``.
    private func account(for removals: [Removal]) {
        let evicted = removals.lazy.compactMap { $0.reason.isEviction ? $0.entry : nil }
        if let newest = evicted.map(\.lastUse).max() {
            state.value.withLock { $0.newestEvicted = max($0.newestEvicted ?? .distantPast, newest) }
        }
        if request.isDryRun || removals.isEmpty { return }
        let bytes = removals.reduce(0) { $0 + $1.allocatedSize.bytes }
        store.control.addUsage(bytes: -bytes, entries: -removals.count { $0.entry != nil })
        var tallies: [RemovalReason: CollectionReport.Tally] = [:]
        tallies.add(removals)
        for (reason, tally) in tallies where tally.count > 0 {
            store.counters.add(StoreCounters.Event(reason), tally.count)
        }
        var young = 0
        for entry in evicted {
            store.control.noteEviction(of: entry.key)
            if now - entry.lastUse < EvictedKeys.youth { young += 1 }
        }
        if young > 0 { store.counters.add(.evictedYoung, young) }
        store.eventLog?.append(
            removals.lazy.filter { $0.entry != nil }.map { (removal) -> (LoggedKey, LoggedRemoval.Cause) in
                // The log names the command that cleared the entry and not the collection that deleted its file.
                let cause: LoggedRemoval.Cause =
                    removal.reason == .cleared ? .cleared : .collected(removal.reason)
                return (LoggedKey(digest: removal.digest, name: nil), cause)
            }
        )
    }

    /// How long the most recently used of the evicted entries had been unused; nil if none was evicted.
    var horizon: Duration? {
        state.value.withLock { $0.newestEvicted }.map { max(.zero, now - $0) }
    }
}

extension CacheError {
    /// Whether the error concerns one file only, so that others may be usable.
    package var concernsOneFile: Bool { cause?.concernsOneFile ?? false }
}

extension StoreDirectory {
    /// Returns the path of the error's file, relative to the cache directory.
    func relativePath(_ error: CacheError) -> String {
        String((error.path ?? path).dropFirst(path.count + 1))
    }
}
