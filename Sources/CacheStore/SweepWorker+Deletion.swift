// SPDX-License-Identifier: Apache-2.0

import Platform

/// How a sweep deletes: everything is looked at again under its stripe, as others have been at work since the
/// scan.
extension SweepWorker {
    /// How long to wait for one stripe.
    ///
    /// Writers hold them for microseconds: whoever is not gone after 0.4 s is stopped, and everything else must not wait
    /// for him. Half of what others wait for a sweep that does not move (``RoomWait/longestStandstill``).
    static let stripePatience: Duration = .milliseconds(400)

    /// How long to wait for each other once one was waited for in vain.
    ///
    /// Twice as long as until a waiter asks for it (``FileLock/askAfter``). So 64 that a stopped process holds cost little
    /// more than one.
    static let laterStripePatience: Duration = .milliseconds(4)

    /// How long to wait for a stripe now.
    func stripePatience(after skipped: Int = 0) -> Duration {
        let isHindered =
            skipped > 0 || state.value.withLock { state in state.skipped.values.contains { !$0.isEmpty } }
        return min(isHindered ? Self.laterStripePatience : request.stripePatience, pacer.rest)
    }

    /// How long one stripe is held, at full pace, to delete one thing after the other.
    ///
    /// In it about 50 go, so that the lock itself (2 µs) is a hundredth of the cost. Then other stripes have their
    /// turn, so that a writer, who asks again every 0.5 ms, gets it: he waits no longer than for a single deletion
    /// on a busy disk.
    static let longestHold: Duration = .milliseconds(1)

    /// Deletes entries of one shard that are still as they were seen.
    ///
    /// Two system calls an entry, and a third where somebody has been at it, beside those for the lock. False: time
    /// ran out.
    mutating func deleteEntries(
        _ removals: ArraySlice<SweepState.Removal>,
        in shard: borrowing Directory
    ) throws(StoreError) -> Bool {
        guard let first = removals.first else { return true }
        let worker = self
        let (outcomes, failure) = outcomes(of: removals.count, .entries, stripe: first.entry.key.stripe) {
            (index) throws(StoreError) in
            try worker.delete(removals[removals.startIndex + index], in: shard)
        }
        let removalsByOutcome = zip(removals, outcomes)
        state.value.withLock { state in
            for (removal, outcome) in removalsByOutcome { state.note(removal, outcome) }
        }
        if !request.isDryRun, let log = store.eventLog { log.append(removalsByOutcome) }
        var tallies = SweepTallies()
        for case (let removal, .deleted) in removalsByOutcome {
            tallies[removal.reason].add(removal.entry.allocatedSize.bytes)
        }
        for (reason, tally) in tallies.byReason { noteRemoval(reason, tally, entries: tally.count) }
        if !request.isDryRun {
            let evicted = removalsByOutcome.lazy.filter { $0.0.reason.isEviction && $0.1.isDeletion }
            store.noteEvictions(evicted.map(\.0.entry), at: begin.time)
        }
        if let failure { throw failure }
        return outcomes.count == removals.count
    }

    /// Decides again under the lock that keeps writers away; false: the entry stays as it is.
    private func delete(
        _ removal: SweepState.Removal,
        in shard: borrowing Directory
    ) throws(StoreError) -> Bool {
        guard try isAsSeen(removal, in: shard) else { return false }
        return request.isDryRun ? true : try scan.delete(removal.entry.key, .entries, in: shard)
    }

    /// One system call where its change time tells that nobody has been at the entry since the sweep began, and two
    /// where the record must be read again.
    private func isAsSeen(
        _ removal: SweepState.Removal,
        in shard: borrowing Directory
    ) throws(StoreError) -> Bool {
        let entry = removal.entry
        guard let status = try scan.status(of: entry.key, .entries, in: shard), status.kind == .regular
        else { return false }
        if removal.reason != .dangling, isUntouched(entry, status) { return true }
        guard let bytes = try scan.recordBytes(of: entry.key, in: shard), entry.isStill(bytes, status)
        else { return false }
        guard removal.reason == .dangling, let record = RecordCodec.decode(bytes, for: entry.key)
        else { return true }
        return try scan.object(record.content.digest) == nil
    }

    /// Whether its change time tells that nobody has been at the entry since the sweep began.
    func isUntouched(_ entry: SeenEntry, _ status: FileStatus) -> Bool {
        // The clock last, as for objects.
        guard let stamp else { return false }
        return entry.isUntouched(since: stamp, status) && clock.isSteady
    }

    /// Deletes objects of one shard that no entry names.
    ///
    /// Two system calls an object, beside those for the lock. False: time ran out.
    mutating func deleteObjects(
        _ objects: ArraySlice<SweepState.Unreferenced>,
        in shard: borrowing Directory,
        changedBefore stamp: Timestamp
    ) throws(StoreError) -> Bool {
        guard let first = objects.first else { return true }
        let worker = self
        let (outcomes, failure) = outcomes(of: objects.count, .objects, stripe: first.digest.stripe) {
            (index) throws(StoreError) in
            let digest = objects[objects.startIndex + index].digest
            return try worker.delete(digest, in: shard, changedBefore: stamp)
        }
        let objectsByOutcome = zip(objects, outcomes)
        state.value.withLock { state in
            for (object, outcome) in objectsByOutcome { state.note(object, outcome) }
        }
        noteObjects(objectsByOutcome.lazy.filter { $0.1.isDeletion }.map(\.0))
        if let failure { throw failure }
        return outcomes.count == objects.count
    }

    /// Looks again under the lock that keeps writers away: who wanted the object since the stamp has
    /// touched it, and his entry may not have been seen.
    ///
    /// The clock is asked last: had it been put back before the object was touched, so that the touch looks older
    /// than the stamp, it is known now.
    private func delete(
        _ digest: Digest,
        in shard: borrowing Directory,
        changedBefore stamp: Timestamp
    ) throws(StoreError) -> Bool {
        guard let status = try scan.status(of: digest, .objects, in: shard), status.kind == .regular,
            status.changed < stamp, clock.isSteady
        else { return false }
        return request.isDryRun ? true : try scan.delete(digest, .objects, in: shard)
    }

    /// Runs `delete` for each number below `count`, while `stripe` is held exclusively.
    ///
    /// The stripe is given back, and taken again, where it has been held long enough and where a rest is due.
    /// Nothing else is waited for while it is held.
    ///
    /// There are fewer outcomes than `count` where time ran out or something failed that concerns all.
    mutating func outcomes(
        of count: Int,
        _ tree: StoreScan.Tree,
        stripe: Int,
        _ delete: (Int) throws(StoreError) -> Bool
    ) -> (outcomes: [SweepState.Outcome], failure: StoreError?) {
        var outcomes: [SweepState.Outcome] = []
        outcomes.reserveCapacity(count)
        let stripes = tree == .entries ? store.entryStripes : store.objectStripes
        while outcomes.count < count {
            if !outcomes.isEmpty, !mayGoOn() { break }
            if state.value.withLock({ $0.skipped[tree]?.contains(stripe) ?? false }) {
                outcomes += repeatElement(.skipped, count: count - outcomes.count)
                break
            }
            // One copy for all: within the closure each use of what may change copies it.
            let worker = self
            do throws(StoreError) {
                let patience = stripePatience()
                try stripes.withLock(.exclusive, stripe: stripe, patience: patience) {
                    () throws(StoreError) in
                    let end = worker.instant() + (worker.pacer.isSparing ? .zero : Self.longestHold)
                    repeat {
                        outcomes.append(try worker.outcome(outcomes.count, delete))
                    } while outcomes.count < count && worker.instant() < end && !worker.pacer.isOver
                }
            } catch {
                guard error.code == .busy else { return (outcomes, error) }
                // To wait in vain is to get on.
                store.control.noteSweepStep()
                state.value.withLock { _ = $0.skipped[tree, default: []].insert(stripe) }
            }
        }
        return (outcomes, nil)
    }

    private func outcome(
        _ index: Int,
        _ delete: (Int) throws(StoreError) -> Bool
    ) throws(StoreError) -> SweepState.Outcome {
        do throws(StoreError) {
            return try delete(index) ? .deleted : .spared
        } catch {
            guard error.concernsOneFile else { throw error }
            return .refused(path: relativePath(error))
        }
    }

    // MARK: Counting

    /// Counts what was removed, other than for show.
    func noteRemoval(_ reason: SweepReason, _ tally: SweepTally, entries: Int) {
        if request.isDryRun { return }
        store.control.addUsage(bytes: -tally.bytes, entries: -entries)
        store.counters.add(StoreCounters.Event(reason), tally.count)
    }

    /// Counts objects that were deleted: by themselves where no entry had named them.
    private func noteObjects(_ objects: some Sequence<SweepState.Unreferenced>) {
        var freed: Int64 = 0
        var orphans = SweepTally()
        for object in objects {
            if object.freed == nil {
                orphans.add(object.allocatedSize.bytes)
            } else {
                freed += object.allocatedSize.bytes
            }
        }
        if orphans.count > 0 { noteRemoval(.orphan, orphans, entries: 0) }
        if !request.isDryRun { store.control.addUsage(bytes: -freed, entries: 0) }
    }
}
