// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform
import Synchronization

/// One part of the memory tier's map: items by the UTF-8 bytes of their key, and their form.
///
/// A table of open addresses, of 16 bytes each. A hit reads one cache line of it, which tells where the item and its
/// word of the generation table are; those then come at the same time. The item repeats the beginning of its key, so
/// that the key's own memory is looked at only where it is longer than ``KeyBytes/Head/capacity`` bytes.
///
/// The eviction queues keep the items alive: an item enters them before it enters a shard. Whoever takes one out of them
/// holds it until it is out of its shard too.
struct MemoryShard: ~Copyable, Sendable {
    /// A place in the table.
    struct Place: Sendable {
        /// Nil where the place is free.
        var item: UncountedReference<HeldItem>?
        /// The lower bits of the hash: where the item would be best, and by the others whether it may be the one.
        var tag: UInt32 = 0
        /// The place of its word in the generation table.
        var word: UInt32 = 0
    }

    /// Hits so far that had to be judged by nobody.
    ///
    /// The first of all: in the cache line of the lock, as the only thing that each hit changes. So threads that use a
    /// shard by turns hand one line to each other.
    private(set) var hits = 0
    private var table = AlignedArray(repeating: Place(), count: 16)
    /// Number of items.
    private(set) var count = 0
    /// What the items here are copies of, for a hit to find without another lock; the tier keeps it alive.
    var store: UncountedReference<Store>?
    /// When the first of the items may have come to its end.
    private var firstEnd = Timestamp.distantFuture
    /// When those that had come to their end were looked for last.
    private var lastLook = Timestamp.distantPast

    /// Where the item of this key is, in this form (nil: in any).
    @inline(__always)
    private func position(of name: KeyBytes, _ key: String, _ form: ObjectIdentifier?) -> Int? {
        let tag = UInt32(truncatingIfNeeded: name.hash)
        let mask = table.count &- 1
        var position = Int(tag) & mask
        while let item = table[position].item {
            if table[position].tag == tag {
                item.prefetch()
                if item.use({ $0.isNamed(name, key, form) }) { return position }
            }
            position = (position &+ 1) & mask
        }
        return nil
    }

    /// The item of this key and form, where it may be given out at `now`; else why it may not, if there is one.
    ///
    /// Where more than the item's generation has to be looked at, `judge` does. No allocation, no system call; one
    /// count of a reference.
    @inline(__always)
    mutating func find(
        _ name: KeyBytes,
        _ key: String,
        _ form: ObjectIdentifier,
        at now: Timestamp,
        judge: (HeldItem) -> CacheEvent.RemovalCause?
    ) -> (item: HeldItem, cause: CacheEvent.RemovalCause?)? {
        guard let position = position(of: name, key, form), let item = table[position].item else {
            return nil
        }
        let word = Int(table[position].word)
        return item.use { item in
            // The word is looked at with the lock held: whoever has removed the value since did so before.
            if isSettled(item, word, at: now) {
                hits &+= 1
            } else if let cause = judge(item) {
                return (item, cause)
            }
            // Only where it changes something: else threads would take the item's cache line from each other.
            let frequency = item.frequency.load(ordering: .relaxed)
            if frequency < EvictionQueues<HeldItem>.highestFrequency {
                item.frequency.store(frequency &+ 1, ordering: .relaxed)
            }
            return (item, nil)
        }
    }

    /// Whether nothing but the generation has to be looked at, and it is current; then the hit is counted for all
    /// processes.
    @inline(__always)
    private func isSettled(_ item: HeldItem, _ word: Int, at now: Timestamp) -> Bool {
        guard now < item.due, !(now < item.start), let store, let generation = item.stamp.generation else {
            return false
        }
        return store.use { $0.countsHit(generation.word, at: word, of: generation.mapping) }
    }

    /// Whether there is an item of this key in any form.
    func contains(_ name: KeyBytes, _ key: String) -> Bool { position(of: name, key, nil) != nil }

    /// Takes out the item of this key, in this form (nil: in any), if there is one.
    mutating func take(_ name: KeyBytes, _ key: String, _ form: ObjectIdentifier?) -> HeldItem? {
        guard let position = position(of: name, key, form) else { return nil }
        let item = table[position].item?.use { $0 }
        vacate(position)
        return item
    }

    /// Takes out an item; false: it is not here any more.
    mutating func remove(_ item: HeldItem) -> Bool {
        guard let position = position(of: item) else { return false }
        vacate(position)
        return true
    }

    /// Adds an item; there must be none of its key and form, and others must keep it alive as long as it is here.
    mutating func add(_ item: HeldItem) {
        count += 1
        if count * 2 > table.count { grow() }
        firstEnd = min(firstEnd, item.stamp.end)
        let word = UInt32(truncatingIfNeeded: item.stamp.generation?.index ?? 0)
        let tag = UInt32(truncatingIfNeeded: item.name.hash)
        place(Place(item: unsafe UncountedReference(item), tag: tag, word: word))
    }

    /// Puts a lesser form of its value in the place of an item; false: that is not here any more.
    mutating func replace(_ item: HeldItem, by lesser: HeldItem) -> Bool {
        guard let position = position(of: item) else { return false }
        (lesser.name, lesser.handle, lesser.stamp) = (item.name, item.handle, item.stamp)
        lesser.frequency.store(item.frequency.load(ordering: .relaxed), ordering: .relaxed)
        table[position].item = unsafe UncountedReference(lesser)
        return true
    }

    /// Has the next use of each value judged by `moment`.
    mutating func advanceAccesses(to moment: Timestamp) {
        for position in 0..<table.count {
            table[position].item?.use { if moment < $0.stamp.accessDue { $0.stamp.accessDue = moment } }
        }
    }

    /// Has each value end at this age at the latest, in nanoseconds.
    mutating func limitAge(to age: Int64) {
        for position in 0..<table.count {
            table[position].item?.use { item in
                let end = item.created.advanced(byNanoseconds: age)
                if end < item.stamp.end { item.stamp.end = end }
                firstEnd = min(firstEnd, end)
            }
        }
    }

    /// The items that have come to their end at `now`.
    ///
    /// A walk through all places, but only where there may be such an item, and not within 16 s of the last one: where
    /// all values live for a short time, not each call takes one.
    mutating func expired(at now: Timestamp) -> [HeldItem] {
        // If the clock was put back, the last look tells nothing.
        let isRested = now < lastLook || !(now < lastLook.advanced(byNanoseconds: Self.restBetweenLooks))
        guard !(now < firstEnd), isRested else { return [] }
        lastLook = now
        firstEnd = .distantFuture
        var expired: [HeldItem] = []
        for position in 0..<table.count {
            guard let item = table[position].item else { continue }
            let end = item.use { $0.stamp.end }
            if now < end { firstEnd = min(firstEnd, end) } else { expired.append(item.use { $0 }) }
        }
        return expired
    }

    /// Nanoseconds, 16 s: so what has expired is gone well within a minute, and what a walk costs, which touches every
    /// value, is paid four times a minute at most.
    private static var restBetweenLooks: Int64 { 16_000_000_000 }

    /// Gives up all items.
    mutating func removeAll() {
        table = AlignedArray(repeating: Place(), count: 16)
        count = 0
        firstEnd = .distantFuture
    }

    private func position(of item: HeldItem) -> Int? {
        let mask = table.count - 1
        var position = Int(truncatingIfNeeded: item.name.hash) & mask
        while let other = table[position].item {
            if other.use({ $0 === item }) { return position }
            position = (position + 1) & mask
        }
        return nil
    }

    private mutating func place(_ place: Place) {
        let mask = table.count - 1
        var position = Int(place.tag) & mask
        while table[position].item != nil { position = (position + 1) & mask }
        table[position] = place
    }

    private mutating func grow() {
        var old = AlignedArray(repeating: Place(), count: table.count * 2)
        swap(&old, &table)
        for position in 0..<old.count where old[position].item != nil { place(old[position]) }
    }

    /// Empties a place, and moves up those behind it that would no longer be found.
    private mutating func vacate(_ position: Int) {
        let mask = table.count - 1
        var (hole, position) = (position, position)
        while true {
            position = (position + 1) & mask
            let place = table[position]
            if place.item == nil { break }
            // Those at or behind their home as seen from the hole stay findable only if they move.
            if (position &- Int(place.tag)) & mask >= (position &- hole) & mask {
                table[hole] = place
                hole = position
            }
        }
        table[hole] = Place()
        count -= 1
    }
}
