// SPDX-License-Identifier: Apache-2.0

import Platform

/// How a sweep shares out what is to be deleted among its threads.
extension Sweep {
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

    /// Deletes the candidates at `places` as planned, and then the objects that no entry names any more.
    mutating func evict(_ places: ArraySlice<UInt32>, _ plan: SweepPlan, changedBefore stamp: Timestamp)
        throws(StoreError)
    {
        var position = places.startIndex
        for part in plan.parts {
            let end = position + part.count
            let reason = part.reason
            try delete(Array(places[position..<end]), in: .entries) { (place, state) in
                let entry = state.candidates.entries[Int(place)]
                return SweepState.Removal(entry: entry, reason: reason, place: place)
            } by: { (worker, removals, shard) throws(StoreError) in
                try worker.deleteEntries(removals, in: shard)
            }
            position = end
        }
        guard worker.clock.isSteady else { return }
        let freed = worker.state.value.withLock { state in
            defer { state.freed = [] }
            return state.freed
        }
        try delete(freed, in: .objects) { (place, state) in
            state.unreferenced(at: place)
        } by: { (worker, objects, shard) throws(StoreError) in
            try worker.deleteObjects(objects, in: shard, changedBefore: stamp)
        }
    }

    /// Runs `delete` for what there is to delete in one shard, piece by piece, until time runs out.
    ///
    /// Objects go in the order of their entries' inodes, which were made with theirs.
    private mutating func delete<Item: SweepDeletion>(
        _ places: [UInt32],
        in tree: StoreScan.Tree,
        item: @escaping @Sendable (UInt32, SweepState) -> Item,
        by delete:
            @escaping @Sendable (inout SweepWorker, ArraySlice<Item>, borrowing Directory) throws(StoreError)
            -> Bool
    ) throws(StoreError) {
        let shards = worker.scan.shards(tree)
        var places = places
        if worker.pacer.isUnlimited {
            places = worker.state.value.withLock { state in
                Self.inOrder(places, state.candidates.entries)
            }
        }
        var position = 0
        while position < places.count {
            let end = min(position + Self.deletionsAtATime, places.count)
            let piece = worker.state.value.withLock { state in
                Self.byShard(places[position..<end], tree, state.candidates.entries)
            }
            let busy = shards.filter { !piece[$0].isEmpty }
            let (done, progress, total) = (position, progress, places.count)
            // Before anybody begins: whoever is told can still do something before the first deletion.
            progress(SweepProgress(phase: .deleting, done: done, total: total, items: done))
            let began = { (number: Int) in
                if number == 0 { return }
                let share = (end - done) * number / busy.count
                let sum = done + share
                progress(SweepProgress(phase: .deleting, done: sum, total: total, items: sum))
            }
            try share(busy, began: began) { (worker, number) throws(StoreError) in
                guard worker.mayGoOn() else { return false }
                let shard = busy[number]
                guard let directory = try worker.open(tree, shard: shard) else { return true }
                let items = worker.state.value.withLock { state in piece[shard].map { item($0, state) } }
                return try delete(&worker, items[...], directory)
            }
            guard worker.mayGoOn() else { return }
            position = end
        }
    }

    private static func inOrder(_ places: [UInt32], _ entries: Segments<SeenEntry>) -> [UInt32] {
        var order = places.map { UInt64(entries[Int($0)].inode) << 32 | UInt64($0) }
        order.sort()
        return order.map { UInt32(truncatingIfNeeded: $0) }
    }

    private static func byShard(
        _ places: ArraySlice<UInt32>,
        _ tree: StoreScan.Tree,
        _ entries: Segments<SeenEntry>
    ) -> [[UInt32]] {
        var shards = [[UInt32]](repeating: [], count: 256)
        for place in places {
            let entry = entries[Int(place)]
            let digest = tree == .entries ? entry.key : entry.content
            shards[Int(digest.byte(0))].append(place)
        }
        return shards
    }
}
