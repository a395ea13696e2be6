// SPDX-License-Identifier: Apache-2.0

import Platform

/// How a sweep shares out what is to be deleted among its threads.
extension Sweep {
    /// How many entries or objects are shared out at a time: of each shard about 16, which go under one hold of
    /// its stripe.
    ///
    /// Entries go least recently used first, and of a sweep whose time runs out the most recently used stay: within
    /// so many the order is that of the shards.
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
        item: @Sendable (Place, borrowing SweepState) -> Item,
        by delete:
            @escaping @Sendable (inout SweepWorker, ArraySlice<Item>, borrowing Directory) throws(StoreError)
            -> Bool
    ) throws(StoreError) {
        var position = 0
        while position < places.count {
            progress(SweepProgress(phase: .deleting, done: position, total: places.count))
            let piece = places[position..<min(position + Self.deletionsAtATime, places.count)]
            let items = worker.state.value.withLock { state in piece.map { item($0, state) } }
                .sorted { $0.digest.bytes[0] < $1.digest.bytes[0] }
            let shards = Self.shards(of: items)
            try share(shards.count) { (worker, number) throws(StoreError) in
                guard worker.mayGoOn() else { return false }
                let shard = Int(items[shards[number].lowerBound].digest.bytes[0])
                guard let directory = try worker.open(tree, shard: shard) else { return true }
                return try delete(&worker, items[shards[number]], directory)
            }
            guard worker.mayGoOn() else { return }
            position += piece.count
        }
    }

    /// The ranges of what lies in the same shard.
    private static func shards(of items: [some SweepDeletion]) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var begin = 0
        for index in items.indices.dropFirst() where items[index].digest.bytes[0] != items[begin].digest.bytes[0] {
            ranges.append(begin..<index)
            begin = index
        }
        if begin < items.count { ranges.append(begin..<items.count) }
        return ranges
    }
}
