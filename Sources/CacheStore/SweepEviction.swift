// SPDX-License-Identifier: Apache-2.0

package import Platform

/// How much has to go, and why.
package struct EvictionGoal: Sendable, Equatable {
    /// Bytes on disk, and entries: both are to be reached.
    package var bytes: Int64
    package var entries: Int
    /// ``SweepReason/size``, ``SweepReason/entries`` or ``SweepReason/freeSpace``.
    package var reason: SweepReason

    package init(bytes: Int64 = 0, entries: Int = 0, reason: SweepReason) {
        self.bytes = bytes
        self.entries = entries
        self.reason = reason
    }
}

/// What an eviction from the list did.
package struct EvictionReport: Sendable, Equatable {
    /// Entries evicted, with the bytes on disk of them and of their objects.
    package var evicted = SweepTally()
    /// Those that somebody has used or changed since the list was made.
    package var spared = 0
    /// Whether there is no more in the list, or no list: the next to go takes a sweep to find.
    package var isExhausted = false
    /// For how long the most recently used of the evicted had not been used.
    package var horizon: Duration?

    package init() {}
}

extension Sweep {
    /// Evicts who is to go next by the list that the last full sweep has left, until `goal` is met or the list ends.
    ///
    /// It is the same sweep, only slower. Each entry is decided again: that nobody has been at it since the sweep's
    /// stamp, by its change time, else by its record. Nor does it matter how long ago the mark was: a put that has
    /// named the object since then has touched it, and one that did so before had published its entry when the mark
    /// read them, which had found this one alone. What it takes is that change times can be compared with the stamp,
    /// so that the clock was not put back, which the sweep's own witness of it tells until the machine is started anew.
    /// (A clock that is put back and put right again within the list's life goes unnoticed. What was stored
    /// in between with an object of the list may lose that object: then it is a miss.)
    ///
    /// - Returns: nil where another process sweeps or evicts.
    /// - Complexity: ten system calls, and one or two for each 256 entries, beside those for what is deleted: two for an
    ///   entry, two for its object, and two for each stripe that they are in. Memory for 256.
    package static func evictListed(
        _ goal: EvictionGoal,
        on store: Store,
        now: Timestamp,
        pace: SweepPace = SweepPace()
    ) throws(StoreError) -> EvictionReport? {
        guard let lock = try janitorLock(of: store) else { return nil }
        return try evictListed(goal, on: store, now: now, pace: pace, under: lock)
    }

    private static func evictListed(
        _ goal: EvictionGoal,
        on store: Store,
        now: Timestamp,
        pace: SweepPace,
        under lock: borrowing LockFile
    ) throws(StoreError) -> EvictionReport {
        var report = EvictionReport()
        report.isExhausted = true
        // Where it is missing, damaged or something else a sweep finds who is to go, and makes it anew.
        guard let file = CandidateList.open(in: store.directory) else { return report }
        var list: CandidateList?
        bestEffort { () throws(Errno) in list = try CandidateList(in: file) }
        guard let found = list, found.witness.isSteady else { return report }
        var request = SweepRequest()
        request.pace = pace
        request.stripePatience = Store.stripePatience
        var worker = SweepWorker(request, on: store, now: now, clock: found.witness)
        worker.objectStamp = found.stamp
        if store.directory.fileSystem.datesAttributes { worker.stamp = found.stamp }
        var eviction = ListedEviction(goal: goal, worker: worker, list: found, report: report)
        while !eviction.isDone, eviction.worker.mayGoOn() {
            let list = eviction.list
            var candidates: [ListedCandidate] = []
            // What can't be read is not there.
            bestEffort { [wanted = eviction.wanted] () throws(Errno) in
                candidates = try list.next(wanted, in: file)
            }
            if candidates.isEmpty {
                eviction.isAtEnd = true
                break
            }
            let count = try eviction.evict(candidates)
            eviction.list.advance(by: count, in: file)
        }
        return eviction.finish()
    }
}

/// An eviction from the list under way.
private struct ListedEviction {
    /// So many share the stripes' locks, each stripe about four of them; fewer where an entry's usual size tells that
    /// fewer will do, as to read one from the list takes 1 µs.
    private static let candidatesAtATime = 256

    let goal: EvictionGoal
    var worker: SweepWorker
    var list: CandidateList
    var report: EvictionReport
    /// Nothing more of the list can be read.
    var isAtEnd = false
    private var newest: Timestamp?

    init(goal: EvictionGoal, worker: SweepWorker, list: CandidateList, report: EvictionReport) {
        self.goal = goal
        self.worker = worker
        self.list = list
        self.report = report
    }

    var isDone: Bool { report.evicted.count >= goal.entries && report.evicted.bytes >= goal.bytes }

    /// How many of the list to look at next.
    var wanted: Int {
        guard report.evicted.count > 0 || goal.bytes == 0 else { return 16 }
        let size = max(1, report.evicted.bytes / Int64(max(1, report.evicted.count)))
        let count = max(
            Int64(goal.entries - report.evicted.count),
            (goal.bytes - report.evicted.bytes) / size + 1
        )
        return Int(min(max(count, 1), Int64(Self.candidatesAtATime)))
    }

    /// Evicts as many of them as are needed, and tells how many were looked at.
    mutating func evict(_ candidates: [ListedCandidate]) throws(StoreError) -> Int {
        let chosen = candidates.prefix(needed(of: candidates))
        var failure: StoreError?
        var evicted: [ListedCandidate] = []
        for (stripe, group) in Self.byStripe(chosen, \.key) {
            let worker = worker
            let (outcomes, error) = self.worker.outcomes(of: group.count, .entries, stripe: stripe) {
                (index) throws(StoreError) in
                try worker.evict(group[index].entry)
            }
            note(group, outcomes, &evicted)
            failure = failure ?? error
            if error != nil { break }
        }
        // Whatever happened, the objects of what has gone are to go too.
        for (stripe, group) in Self.byStripe(evicted[...], \.content) {
            let worker = worker
            let (outcomes, error) = self.worker.outcomes(of: group.count, .objects, stripe: stripe) {
                (index) throws(StoreError) in
                try worker.deleteFreed(group[index].entry.content)
            }
            let sizes = zip(group, outcomes).filter { $0.1.isDeletion }.map(\.0.objectSize.bytes)
            let bytes = sizes.reduce(0, +)
            report.evicted.bytes += bytes
            worker.store.control.addUsage(bytes: -bytes, entries: 0)
            failure = failure ?? error
            if error != nil { break }
        }
        if let failure { throw failure }
        return chosen.count
    }

    /// How many of the next have to go as far as the list tells.
    private func needed(of candidates: [ListedCandidate]) -> Int {
        var rest = (entries: goal.entries - report.evicted.count, bytes: goal.bytes - report.evicted.bytes)
        var count = 0
        while count < candidates.count, rest.entries > 0 || rest.bytes > 0 {
            rest.entries -= 1
            rest.bytes -= candidates[count].entry.allocatedSize.bytes + candidates[count].objectSize.bytes
            count += 1
        }
        return count
    }

    private mutating func note(
        _ group: [ListedCandidate],
        _ outcomes: [SweepState.Outcome],
        _ evicted: inout [ListedCandidate]
    ) {
        var tally = SweepTally()
        for (candidate, outcome) in zip(group, outcomes) {
            if outcome.isDeletion {
                tally.add(candidate.entry.allocatedSize.bytes)
                evicted.append(candidate)
                newest = max(newest ?? .distantPast, candidate.entry.lastUse)
            } else {
                report.spared += 1
            }
        }
        report.evicted.count += tally.count
        report.evicted.bytes += tally.bytes
        if tally.count > 0 { worker.noteRemoval(goal.reason, tally, entries: tally.count) }
        let gone = zip(group, outcomes).lazy.filter { $0.1.isDeletion }.map(\.0.entry)
        worker.store.noteEvictions(gone, at: worker.begin.time)
        if let log = worker.store.eventLog {
            log.append(gone.map { LoggedKey(digest: $0.key, name: nil) }, cause: .swept(goal.reason))
        }
    }

    private static func byStripe(
        _ candidates: ArraySlice<ListedCandidate>,
        _ digest: (SeenEntry) -> Digest
    ) -> [(stripe: Int, group: [ListedCandidate])] {
        var groups = [[ListedCandidate]](repeating: [], count: StoreLayout.stripeCount)
        for candidate in candidates { groups[digest(candidate.entry).stripe].append(candidate) }
        return groups.enumerated().filter { !$0.1.isEmpty }.map { ($0.0, $0.1) }
    }

    mutating func finish() -> EvictionReport {
        report.isExhausted = isAtEnd || list.position >= list.count
        if let newest {
            let horizon = max(.zero, worker.begin.time - newest)
            report.horizon = horizon
            worker.store.control.noteHorizon(horizon)
        }
        return report
    }
}

extension SweepWorker {
    /// Deletes an entry that is still as it was seen; false: it stays as it is.
    ///
    /// The caller holds its stripe exclusively. Two system calls, three where somebody has been at it.
    fileprivate func evict(_ entry: SeenEntry) throws(StoreError) -> Bool {
        guard let status = try store.entries.status(of: entry.key), status.kind == .regular else {
            return false
        }
        if !isUntouched(entry, status) {
            guard let bytes = try store.entries.read(entry.key)?.bytes, entry.isStill(bytes, status) else {
                return false
            }
        }
        return try store.entries.delete(entry.key)
    }

    /// Deletes an object whose only entry is deleted, unless somebody has touched it since the mark.
    ///
    /// The caller holds its stripe exclusively. Two system calls.
    fileprivate func deleteFreed(_ content: Digest) throws(StoreError) -> Bool {
        // The clock last, as it is known then if it was put back before the object was touched.
        guard let status = try store.objects.status(of: content), status.kind == .regular,
            status.changed < objectStamp, clock.isSteady
        else { return false }
        return try store.objects.delete(content)
    }
}
