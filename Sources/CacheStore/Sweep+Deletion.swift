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

    /// Deletes entries as planned.
    mutating func deleteEntries(_ removals: [SweepPlan.Removal]) throws(StoreError) {
        try delete(removals, in: .entries) { (removal, state) in
            SweepState.Removal(entry: state.entries[Int(removal.index)], reason: removal.reason)
        } by: { (worker, removals, shard) throws(StoreError) in
            try worker.deleteEntries(removals, in: shard)
        }
    }

    /// Deletes the objects that no entry names by now; nothing where the clock is not to be trusted.
    mutating func deleteObjects(changedBefore stamp: Timestamp) throws(StoreError) {
        guard worker.clock.isSteady else { return }
        let places = worker.state.value.withLock { [request] in $0.takeUnreferenced(request) }
        try delete(places, in: .objects) { (place, state) in
            SweepState.Unreferenced(content: state.contents[place], place: place)
        } by: { (worker, objects, shard) throws(StoreError) in
            try worker.deleteObjects(objects, in: shard, changedBefore: stamp)
        }
    }

    /// Runs `delete` for what there is to delete in one shard, piece by piece, until time runs out.
    private mutating func delete<Place: Sendable, Item: SweepDeletion>(
        _ places: [Place],
        in tree: StoreScan.Tree,
        item: @escaping @Sendable (Place, inout SweepState) -> Item,
        by delete:
            @escaping @Sendable (inout SweepWorker, ArraySlice<Item>, borrowing Directory) throws(StoreError)
            -> Bool
    ) throws(StoreError) {
        let shards = worker.scan.shards(tree)
        var places = places
        if worker.pacer.isUnlimited {
            places = worker.state.value.withLock { state in
                Self.inOrder(places) { item($0, &state).inode }
            }
        }
        var position = 0
        while position < places.count {
            let end = min(position + Self.deletionsAtATime, places.count)
            let piece = worker.state.value.withLock { state in
                Self.byShard(places[position..<end]) { item($0, &state).digest }
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
                let items = worker.state.value.withLock { state in piece[shard].map { item($0, &state) } }
                return try delete(&worker, items[...], directory)
            }
            guard worker.mayGoOn() else { return }
            position = end
        }
    }

    private static func inOrder<Place>(_ places: [Place], inode: (Place) -> UInt32) -> [Place] {
        var order = places.indices.map { UInt64(inode(places[$0])) << 32 | UInt64($0) }
        order.sort()
        return order.map { places[Int($0 & 0xffff_ffff)] }
    }

    private static func byShard<Place>(_ places: ArraySlice<Place>, digest: (Place) -> Digest) -> [[Place]] {
        var shards = [[Place]](repeating: [], count: 256)
        for place in places { shards[Int(digest(place).bytes[0])].append(place) }
        return shards
    }
}
