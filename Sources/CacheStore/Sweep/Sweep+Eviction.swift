// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a sweep has to evict for its limits to hold, and how it shares that out among its threads.
extension Sweep {
    // MARK: Planning

    /// What has to become available on the file system; nil: nothing has to.
    ///
    /// Asked once, when the sweep begins: what it removes is added up from then on, so that a dry run and the run after
    /// it decide the same.
    func freeSpaceGoal() throws(CacheError) -> FreeSpaceGoal? {
        guard let floor = request.limits.minimumFree else { return nil }
        return FreeSpaceGoal(floor, at: try parts.directory.space())
    }

    /// What of these candidates to evict now; nil: nothing.
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

    /// How many candidates to look for, by what the control file says of the usage.
    ///
    /// Where it is wrong there is another pass, or some are looked for in vain.
    func wantedByUsage(_ shortfall: Int64?) -> Int {
        guard !request.expiredOnly, request.limits.areBounding else { return 0 }
        guard let usage = parts.control.usage, usage.isCounted, usage.entries > 0 else {
            // Nothing is known but that much may have to go.
            return 1 << 19
        }
        let present = Occupancy(
            bytes: usage.plausibleBytes,
            overhead: parts.overhead,
            entries: usage.plausibleEntries
        )
        var excess = request.limits.excess(of: present)
        excess.freeSpace = shortfall ?? 0
        return Self.wanted(excess, of: present)
    }

    /// The same by what a pass has found, for the next one.
    func wantedStill(_ shortfall: Int64?) -> Int {
        let limits = request.limits
        return state.value.withLock { Self.wanted($0.excess(over: limits, shortfall), of: $0.occupancy) }
    }

    /// As many of the usual size as have to go, and a sixteenth more as they may be smaller or be spared, or else those
    /// that the next trims are to find.
    private static func wanted(_ excess: Excess, of present: Occupancy) -> Int {
        let size = max(1, present.bytes / Int64(max(1, present.entries)))
        let count = max(0, excess.entries, Int(excess.bytes / size))
        let going = min(count, max(0, present.entries))
        return going + max(going / 16, listLength(ofEntries: max(0, present.entries - going)))
    }

    // MARK: Evicting

    /// How many entries or objects are shared out at a time; of each shard about 16, which go under one hold of its
    /// stripe.
    ///
    /// Where the sweep may have to end before it is done, or goes slowly, entries go least recently used first but for
    /// the order within so many, and of a sweep whose time runs out the most recently used stay.
    ///
    /// Else they go in the order of their inodes. ext4 numbers new files on, whatever their directory, and 16 inodes
    /// share a block, so this way a block is changed within one transaction of the journal and written to it once. Of
    /// so many removals half a transaction of a small journal (64 MiB) is filled, by names and inodes together, so
    /// that their order within does not matter.
    private static let deletionsAtATime = 4096

    /// Deletes the candidates at `places` as planned, and then the objects that no entry names any more; false: time ran
    /// out.
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

    /// Deletes what the candidates at `places` stand for, piece by piece; false: time ran out.
    ///
    /// Objects go in the order of their entries' inodes, which were made with theirs.
    private mutating func delete(
        _ places: [UInt32],
        in tree: Tree,
        _ removal: @escaping @Sendable (UInt32, SweepState) -> Removal
    ) throws(CacheError) -> Bool {
        let shards = parts.shards(tree)
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
            // Before anybody begins: whoever is told can still do something before the first deletion.
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

    /// How many candidates to keep for the next trims: a quarter of all, which is what goes in two and a half trims
    /// from 95 to 85 per cent; at most 12 MB of them.
    static func listLength(ofEntries count: Int) -> Int {
        min(max(count / 4, 8192), 131_072)
    }

    /// Writes down who is to go next, for ``ListedEviction``; nothing of a dry run, where not everything
    /// could be read, or where no limit is set for which anything would have to go: it is a write of up to 12 MB.
    ///
    /// Only entries whose objects they alone name: so that object can go with the entry, whenever that is. Nothing that a
    /// stripe guards which was not to be had: who held it may have published since what the mark has not seen.
    func keepCandidates(_ places: ArraySlice<UInt32>) {
        // One of a part of the keys would take the place of one of all.
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
        CandidateList(stamp: stamp, count: list.count).write(list, in: parts.directory)
    }
}
