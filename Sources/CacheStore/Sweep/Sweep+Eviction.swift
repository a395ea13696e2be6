// SPDX-License-Identifier: Apache-2.0

import Platform

/// The plan of the evictions that a sweep needs to meet its limits, and their distribution among its threads.
extension Sweep {
    // MARK: Planning

    /// Returns the space that must become available on the file system; nil if there is no such limit.
    ///
    /// The free space is read once, when the sweep begins. From then on the sizes of removed files are added, so that a dry
    /// run and the run after it decide the same.
    func freeSpaceGoal() throws(CacheError) -> FreeSpaceGoal? {
        guard let floor = request.limits.minimumFree else { return nil }
        return FreeSpaceGoal(floor, at: try store.directory.space())
    }

    /// Plans which of these candidates to evict now; returns nil if none.
    func plan(_ places: ArraySlice<UInt32>, _ shortfall: Int64?) -> SweepPlan? {
        if places.isEmpty { return nil }
        let limits = request.limits
        return state.value.withLock { state in
            let entries = state.pass.candidates.entries
            let plan = SweepPlan(
                places.lazy.map { entries[Int($0)] },
                marks: state.pass.marks,
                excess: state.excess(over: limits, shortfall)
            )
            return plan.count > 0 ? plan : nil
        }
    }

    /// Returns how many candidates to look for, according to the usage in the control file.
    ///
    /// If the usage is wrong, there is another pass, or more candidates than necessary.
    func wantedByUsage(_ shortfall: Int64?) -> Int {
        guard !request.expiredOnly, request.limits.areBounding else { return 0 }
        guard let usage = store.control.usage, usage.isCounted, usage.entries > 0 else {
            // The usage is not known, and much may have to be evicted.
            return 1 << 19
        }
        let present = Occupancy(
            bytes: usage.plausibleBytes,
            overhead: store.overhead,
            entries: usage.plausibleEntries
        )
        var excess = request.limits.excess(of: present)
        excess.freeSpace = shortfall ?? 0
        return Self.wanted(excess, of: present)
    }

    /// Returns how many candidates to look for in the next pass, according to the results of the last one.
    func wantedStill(_ shortfall: Int64?) -> Int {
        let limits = request.limits
        return state.value.withLock { Self.wanted($0.excess(over: limits, shortfall), of: $0.occupancy) }
    }

    /// Returns the number of entries of average size that must be evicted, plus a reserve.
    ///
    /// The reserve is a sixteenth, because entries may be smaller or be spared, or the length of the list for the next trims
    /// if that is greater.
    private static func wanted(_ excess: Excess, of present: Occupancy) -> Int {
        let size = max(1, present.bytes / Int64(max(1, present.entries)))
        let count = max(0, excess.entries, Int(excess.bytes / size))
        let going = min(count, max(0, present.entries))
        return going + max(going / 16, listLength(ofEntries: max(0, present.entries - going)))
    }

    // MARK: Evicting

    /// The number of entries or objects that are distributed at a time, about 16 per shard, which are deleted under one hold
    /// of its stripe.
    ///
    /// If the sweep may have to end early, or works slowly, entries are deleted least recently used first, except for the
    /// order within each batch. If its time runs out, the most recently used remain.
    ///
    /// Otherwise they are deleted in the order of their inodes. ext4 numbers new files consecutively, whatever their
    /// directory, and 16 inodes share a block, so each block is changed within one transaction of the journal and written to
    /// it once. A batch of removals fills half a transaction of a small journal (64 MiB), names and inodes together, so the
    /// order within it does not matter.
    private static let deletionsAtATime = 4096

    /// Evicts the candidates at `places` as planned, then deletes the objects that no entry names any more; returns false if
    /// the time ran out.
    mutating func evict(_ places: ArraySlice<UInt32>, _ plan: SweepPlan) throws(CacheError) -> Bool {
        var position = places.startIndex
        for part in plan.parts {
            let end = position + part.count
            let isDone = try delete(Array(places[position..<end]), in: .entries) { (place, state) in
                Removal(state.pass.candidates.entries[Int(place)], part.reason, at: place)
            }
            guard isDone else { return false }
            position = end
        }
        guard stamp.clock.isSteady else { return true }
        let freed = state.value.withLock { state in
            defer { state.pass.freed = [] }
            return state.pass.freed
        }
        return try delete(freed, in: .objects) { $1.unreferenced(at: $0) }
    }

    /// Deletes the entries or objects of the candidates at `places` in batches; returns false if the time ran out.
    ///
    /// Objects are deleted in the order of their entries' inodes, which were created with theirs.
    private mutating func delete(
        _ places: [UInt32],
        in tree: Tree,
        _ removal: @escaping @Sendable (UInt32, SweepState) -> Removal
    ) throws(CacheError) -> Bool {
        let shards = store.shards(tree)
        var places = places
        if pacer.isUnlimited {
            places = state.value.withLock { Self.inOrder(places, $0.pass.candidates.entries) }
        }
        let (progress, total) = (request.progress, places.count)
        for start in stride(from: 0, to: total, by: Self.deletionsAtATime) {
            let end = min(start + Self.deletionsAtATime, total)
            let piece = state.value.withLock { state in
                var piece = [[UInt32]](repeating: [], count: StoreLayout.shardCount)
                for place in places[start..<end] {
                    let entry = state.pass.candidates.entries[Int(place)]
                    piece[(tree == .entries ? entry.key : entry.content).shard].append(place)
                }
                return piece
            }
            let busy = shards.filter { !piece[$0].isEmpty }
            let showProgress = { (done: Int) in
                progress(CacheProgress(.deleting, done: done, total: total, items: done))
            }
            // Before the threads begin, so that the progress handler can act before the first deletion.
            showProgress(start)
            let isDone = try share(busy) { (sweep, shard) throws(CacheError) in
                guard sweep.pacer.mayGoOn() else { return false }
                guard let directory = try sweep.open(tree, shard: shard) else { return true }
                let removals = sweep.state.value.withLock { state in
                    piece[shard].map { removal($0, state) }
                }
                return try sweep.delete(removals, in: directory)
            } began: { number in
                if number > 0 { showProgress(start + (end - start) * number / busy.count) }
            }
            guard isDone, pacer.mayGoOn() else { return false }
        }
        return true
    }

    private static func inOrder(_ places: [UInt32], _ entries: [SeenEntry]) -> [UInt32] {
        var order = places.map { UInt64(entries[Int($0)].inode) << 32 | UInt64($0) }
        order.sort()
        return order.map { UInt32(truncatingIfNeeded: $0) }
    }

    // MARK: List

    /// Returns the number of candidates to keep for the next trims.
    ///
    /// It is a quarter of all entries, as many as two and a half trims from 95 to 85 per cent evict; at most 12 MB.
    static func listLength(ofEntries count: Int) -> Int {
        min(max(count / 4, 8192), 131_072)
    }

    /// Writes the list of the next entries to evict, for ``ListedEviction``.
    ///
    /// It writes nothing in a dry run, if a file could not be read, or if no limit is set that requires evictions: a list
    /// takes up to 12 MB.
    ///
    /// The list has only entries that are the only ones to name their object, so that the object can always be deleted with
    /// the entry. It has no file whose stripe could not be acquired: the holder may have published since, unseen by the
    /// mark.
    func keepCandidates(_ places: ArraySlice<UInt32>) {
        // A list of only a part of the keys would replace a list of all keys.
        guard !request.isDryRun, request.limits.areBounding, request.selection == .all else { return }
        let (objects, entries) = (deletions.skipped(.objects), deletions.skipped(.entries))
        let list = state.value.withLock { state -> [ListedCandidate]? in
            if state.pass.hasUnreadableEntries { return nil }
            let length = Self.listLength(ofEntries: state.report.entries.count)
            var list: [ListedCandidate] = []
            list.reserveCapacity(min(length, places.count))
            for place in places where list.count < length {
                let entry = state.pass.candidates.entries[Int(place)]
                guard let mark = state.pass.marks.value(of: entry.content), mark.references == 1,
                    mark.presence == .present, !objects.contains(entry.content.stripe),
                    !entries.contains(entry.key.stripe)
                else { continue }
                list.append(ListedCandidate(entry: entry, objectSize: mark.allocatedSize))
            }
            return list
        }
        guard let list else { return }
        CandidateList(stamp: stamp, count: list.count).write(list, in: store.directory)
    }
}
