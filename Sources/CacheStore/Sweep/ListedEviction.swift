// SPDX-License-Identifier: Apache-2.0

import Platform

/// An eviction of entries from the list that the last full sweep has written.
///
/// The eviction is the rest of that sweep, done later. It checks each entry again: the entry must be unchanged since the
/// sweep's stamp, as shown by its change time or else by its record. How long ago the sweep ran does not matter. A put
/// that has named the object since the stamp has touched it. A put before the stamp had published its entry before the
/// sweep read the entries, and the sweep found no other entry that names the object.
///
/// Change times can be compared with the stamp only if the clock was not set back. The sweep's clock readings, which the
/// list contains, show that until the machine restarts. (If the clock is set back and corrected again while the list is
/// in use, this goes unnoticed. A value that was stored in between, and whose object is in the list, may lose the object;
/// that results in a miss.)
struct ListedEviction {
    /// The largest number of candidates to read at a time.
    ///
    /// They are deleted in groups that share a stripe, about four per stripe. If fewer candidates suffice according to
    /// the average size of an entry, fewer are read, because reading one from the list takes 1 µs.
    private static let candidatesAtATime = 256

    private let store: Store
    private let goal: Excess
    private let deletions: Deletions
    private var list: CandidateList
    private var pacer: SweepPacer
    private var evicted = CollectionReport.Tally()
    private var spared = 0

    /// Evicts until `goal` is reached or the list ends.
    ///
    /// - Returns: nil if another process sweeps or evicts.
    /// - Complexity: ten system calls, one or two for each 256 entries, and those for the deletions: four for an entry,
    ///   four for its object, and two for each stripe. Memory for 256 entries.
    static func run(
        _ goal: Excess,
        on store: Store,
        now: Timestamp,
        pace: SweepPace = SweepPace()
    ) throws(CacheError) -> CollectionReport? {
        guard let lock = try store.janitor.take() else { return nil }
        var report = CollectionReport()
        report.isExhausted = true
        // If the list is missing, damaged or not a regular file, a sweep finds the next entries and writes a new list.
        guard let file = CandidateList.open(in: store.directory) else { return report }
        let found = bestEffort { () throws(Errno) in
            try CandidateList(in: file, datesAttributes: store.directory.fileSystem.kind.datesAttributes)
        }
        guard let found, let list = found, list.stamp.clock.isSteady else { return report }
        var request = SweepRequest()
        request.stripePatience = SweepRequest.hurriedStripePatience
        var eviction = ListedEviction(
            store: store,
            goal: goal,
            deletions: Deletions(store: store, request: request, now: now),
            list: list,
            pacer: SweepPacer(pace, in: store.control)
        )
        try eviction.run(file, &report, under: lock)
        return report
    }

    private mutating func run(
        _ file: borrowing FileDescriptor,
        _ report: inout CollectionReport,
        under lock: borrowing LockFile
    ) throws(CacheError) {
        var isAtEnd = false
        while !isAtEnd, let reason = rest.reason, pacer.mayGoOn() {
            // Unreadable candidates are treated as missing.
            let next = bestEffort { [list, wanted] () throws(Errno) in try list.next(wanted, in: file) }
            let candidates = next ?? []
            isAtEnd = candidates.isEmpty
            let chosen = candidates[..<needed(of: candidates, for: reason)]
            let gone = try evict(chosen, for: reason)
            if gone.count > 0 { report.removed[reason, default: CollectionReport.Tally()] += gone }
            if !isAtEnd { list.advance(by: chosen.count, in: file) }
        }
        report.isExhausted = isAtEnd || list.position >= list.count
        report.spared = spared
        report.evictionAge = deletions.horizon
        if let age = report.evictionAge { store.control.noteHorizon(age) }
    }

    /// What remains to be evicted.
    private var rest: Excess {
        var rest = goal
        rest.subtract(entries: evicted.count, bytes: evicted.bytes)
        return rest
    }

    /// The number of candidates to read next.
    private var wanted: Int {
        guard evicted.count > 0 || goal.bytes == 0 else { return 16 }
        let size = max(1, evicted.bytes / Int64(max(1, evicted.count)))
        let count = max(Int64(goal.entries - evicted.count), (goal.bytes - evicted.bytes) / size + 1)
        return Int(min(max(count, 1), Int64(Self.candidatesAtATime)))
    }

    /// Returns how many of the next candidates must be evicted for `reason`, according to the sizes in the list.
    private func needed(of candidates: [ListedCandidate], for reason: RemovalReason) -> Int {
        var (rest, count) = (rest, 0)
        while count < candidates.count, rest.reason == reason {
            let candidate = candidates[count]
            rest.subtract(bytes: candidate.entry.allocatedSize.bytes + candidate.objectSize.bytes)
            count += 1
        }
        return count
    }

    /// Evicts those candidates that are unchanged, with their objects; returns the number of entries and the bytes of
    /// both.
    private mutating func evict(
        _ candidates: ArraySlice<ListedCandidate>,
        for reason: RemovalReason
    ) throws(CacheError) -> CollectionReport.Tally {
        let before = evicted
        let (gone, failure) = delete(candidates) { Removal($0.entry, reason) }
        evicted.count += gone.count
        // Even after an error, because the objects of the deleted entries must be deleted too.
        let (_, laterFailure) = delete(gone[...]) {
            Removal(object: $0.entry.content, $0.objectSize, freed: reason)
        }
        if let failure = failure ?? laterFailure { throw failure }
        return CollectionReport.Tally(
            count: evicted.count - before.count,
            bytes: evicted.bytes - before.bytes
        )
    }

    /// Deletes the entry or the object of each candidate, grouped by stripe, and accounts for the deletions; returns the
    /// candidates whose file was deleted.
    private mutating func delete(
        _ candidates: ArraySlice<ListedCandidate>,
        as removal: (ListedCandidate) -> Removal
    ) -> (gone: [ListedCandidate], failure: CacheError?) {
        let (store, stamp) = (store, list.stamp)
        var groups = [[ListedCandidate]](repeating: [], count: StoreLayout.stripeCount)
        for candidate in candidates { groups[removal(candidate).digest.stripe].append(candidate) }
        var all: [ListedCandidate] = []
        for (stripe, group) in groups.enumerated() {
            let removals = group.map(removal)
            let (outcomes, failure) = deletions.run(removals, stripe: stripe, &pacer) {
                (removal, lock: borrowing StripeLock) throws(CacheError) in
                try store.delete(removal, stamp, under: lock)
            }
            let gone = outcomes.indices.filter { outcomes[$0].isDeletion }
            if removals.first?.tree == .entries { spared += outcomes.count - gone.count }
            let bytes = gone.reduce(evicted.bytes) { $0 + removals[$1].allocatedSize.bytes }
            // The sizes come from the list, which other programs can write.
            evicted.bytes = bytes.plausible
            all += gone.map { group[$0] }
            if let failure { return (all, failure) }
        }
        return (all, nil)
    }
}

extension Store {
    /// Deletes an entry that is unchanged since the sweep, or an object whose only entry was deleted and that no put has
    /// touched since the sweep; returns false if the file stays.
    ///
    /// Four system calls, five for an entry that another process has changed.
    fileprivate func delete(
        _ removal: Removal,
        _ stamp: SweepStamp,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> Bool {
        guard let status = try directory.status(of: removal.digest, removal.tree), status.kind == .regular
        else { return false }
        if let entry = removal.entry {
            if !stamp.isUntouched(entry, status) {
                guard let bytes = try entries.recordBytes(entry.key), entry.isStill(bytes, status)
                else { return false }
            }
            try rememberVersion(of: entry.key, under: lock)
        } else {
            if control.hasIndexBlocks(status) { control.noteIndexBlocks(true) }
            if try !isUntouched(removal.digest, status, stamp, under: lock) { return false }
        }
        return try directory.delete(removal.digest, removal.tree)
    }
}
