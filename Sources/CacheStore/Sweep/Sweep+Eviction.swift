// SPDX-License-Identifier: Apache-2.0

import Platform

/// Plans the evictions that a sweep needs to meet its limits, and distributes them among its threads.
extension Sweep {
    // MARK: Planning

    /// Returns the space that must become available on the file system; nil if there is no such limit.
    ///
    /// The free space is read once, when the sweep begins. From then on the sizes of deleted files are added, so that a
    /// dry run and the sweep after it make the same decisions. The exception is a file system that had no space available
    /// at the beginning: its free space is read again after evictions (``FreeSpaceGoal/learn(_:)``).
    func freeSpaceGoal() throws(CacheError) -> FreeSpaceGoal? {
        guard let floor = request.limits.minimumFree else { return nil }
        return FreeSpaceGoal(floor, at: try store.directory.space())
    }

    /// Plans which of the candidates at `places` to evict now; returns nil if none.
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
    /// If the usage is wrong, the sweep needs another pass, or keeps more candidates than necessary.
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

    /// Returns how many candidates to look for in the next pass, according to the results of the previous one.
    func wantedStill(_ shortfall: Int64?) -> Int {
        let limits = request.limits
        return state.value.withLock { Self.wanted($0.excess(over: limits, shortfall), of: $0.occupancy) }
    }

    /// Returns the number of entries of average size that must be evicted, plus a reserve.
    ///
    /// The reserve is a sixteenth of that number, because entries may be smaller or be spared, or the length of the list
    /// for later evictions if that is greater.
    private static func wanted(_ excess: Excess, of present: Occupancy) -> Int {
        let size = max(1, present.bytes / Int64(max(1, present.entries)))
        let count = max(0, excess.entries, Int(excess.bytes / size))
        let going = min(count, max(0, present.entries))
        return going + max(going / 16, listLength(ofEntries: max(0, present.entries - going)))
    }

    // MARK: Evicting

    /// The number of entries or objects to distribute among the threads at a time: about 16 per shard, which are deleted
    /// while its stripe is held once.
    ///
    /// If the sweep may have to end early, or works slowly, it deletes entries in the order of their last use, except for
    /// the order within each batch. If its time runs out, the most recently used entries remain.
    ///
    /// Otherwise it deletes entries in the order of their inodes. ext4 numbers new files consecutively, whatever their
    /// directory, and 16 inodes share a block. So each block is changed within one transaction of the journal, and is
    /// written to the journal once. The deletions of a batch, names and inodes together, fill half a transaction of a
    /// small journal (64 MiB), so the order within the batch does not matter.
    private static let deletionsAtATime = 4096

    /// Evicts the candidates at `places` as planned, then deletes the objects that no entry names anymore; returns false
    /// if the time ran out.
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
    /// Objects are deleted in the order of their entries' inodes, because the inodes of an object and its entry were
    /// created together.
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
            // Called before the threads begin, so that the progress handler can act before the first deletion.
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

    /// Returns the number of candidates to keep for later evictions that need no scan.
    ///
    /// It is a quarter of all entries, as many as about five evictions from 95 to 90 per cent need. It is at least 8,192
    /// and at most 131,072, or 12 MB.
    static func listLength(ofEntries count: Int) -> Int {
        min(max(count / 4, 8192), 131_072)
    }

    /// Writes the list of the next entries to evict, for ``ListedEviction``.
    ///
    /// It writes nothing in a dry run, if only selected entries could be evicted, if an entry could not be read, or if no
    /// limit is set that requires evictions: a list takes up to 12 MB.
    ///
    /// The list has only entries that are the only ones to name their object, so that the object can always be deleted
    /// with the entry. It has no file whose stripe could not be acquired, because the holder may have published an entry
    /// that the sweep has not read.
    func keepCandidates(_ places: ArraySlice<UInt32>) {
        // A list of some keys would replace a list of all keys.
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
