// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform
import Synchronization

/// One part of the memory tier's map: items by the UTF-8 bytes of their key, and their form.
///
/// It is an open-addressing table with slots of 16 bytes. A hit reads one cache line of the table, which has the
/// locations of the item and of its word in the generation table; the processor then loads both in parallel. The item
/// contains a copy of the beginning of its key, so that the key's own memory is read only for keys longer than
/// ``KeyBytes/Head/capacity`` bytes.
///
/// The eviction queues keep the items alive: an item enters the queues before it enters a shard. A caller that removes an
/// item from the queues retains it until it has left its shard too.
struct MemoryShard: ~Copyable, Sendable {
    /// A slot of the table.
    struct Place: Sendable {
        /// The item; nil if the slot is free.
        var item: UncountedReference<MemoryEntry>?
        /// The lower bits of the hash: some of them select the item's preferred slot, the others rule out most other
        /// items.
        var tag: UInt32 = 0
        /// The index of the item's word in the generation table.
        var word: UInt32 = 0
    }

    /// The number of hits that checked only the generation.
    ///
    /// It is the first field, so that it shares a cache line with the lock. Each hit changes nothing else, so threads
    /// that alternate on a shard exchange only one cache line.
    private(set) var hits = 0
    private var table = AlignedArray(repeating: Place(), count: 16)
    /// The number of items.
    private(set) var count = 0
    /// The store whose values the items are copies of; the tier keeps it alive.
    ///
    /// It is here, so that a hit needs no other lock to read it.
    var store: UncountedReference<Store>?
    /// The earliest time at which an item may expire.
    private var firstEnd = Timestamp.distantFuture
    /// The time of the last scan for expired items.
    private var lastLook = Timestamp.distantPast

    /// Returns the slot of the item of this key, in this form; nil matches any form.
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

    /// Returns the item of this key and form, and why it may not be returned at `now`, or nil if it may; returns nil if
    /// there is no such item.
    ///
    /// If more than the item's generation must be checked, or if it has changed, `judge` decides. Makes no allocation and
    /// no system call; changes one reference count.
    @inline(__always)
    mutating func find(
        _ name: KeyBytes,
        _ key: String,
        _ form: ObjectIdentifier,
        at now: Timestamp,
        judge: (MemoryEntry) -> MemoryRemovalCause?
    ) -> (item: MemoryEntry, cause: MemoryRemovalCause?)? {
        guard let position = position(of: name, key, form), let item = table[position].item else {
            return nil
        }
        let word = Int(table[position].word)
        return item.use { item in
            // The generation word is loaded under the shard's lock: a writer changes the word before it removes the item.
            if isSettled(item, word, at: now) {
                hits &+= 1
            } else if let cause = judge(item) {
                return (item, cause)
            }
            // Stored only if it changes: otherwise threads would contend for the item's cache line.
            let frequency = item.frequency.load(ordering: .relaxed)
            if frequency < EvictionQueues<MemoryEntry>.highestFrequency {
                item.frequency.store(frequency &+ 1, ordering: .relaxed)
            }
            return (item, nil)
        }
    }

    /// Returns whether only the generation must be checked and is current; if so, counts the hit in the counters of all
    /// processes.
    @inline(__always)
    private func isSettled(_ item: MemoryEntry, _ word: Int, at now: Timestamp) -> Bool {
        guard now < item.due, !(now < item.start), let store, let generation = item.validity.generation else {
            return false
        }
        return store.use { $0.countsHit(generation.word, at: word, of: generation.mapping) }
    }

    /// Returns whether there is an item of this key, in any form.
    func contains(_ name: KeyBytes, _ key: String) -> Bool { position(of: name, key, nil) != nil }

    /// Removes and returns the item of this key, in this form; nil matches any form.
    mutating func take(_ name: KeyBytes, _ key: String, _ form: ObjectIdentifier?) -> MemoryEntry? {
        guard let position = position(of: name, key, form) else { return nil }
        let item = table[position].item?.use { $0 }
        vacate(position)
        return item
    }

    /// Removes an item; returns false if it is no longer here.
    mutating func remove(_ item: MemoryEntry) -> Bool {
        guard let position = position(of: item) else { return false }
        vacate(position)
        return true
    }

    /// Adds an item.
    ///
    /// The shard must not have an item of the same key and form. The caller must keep the item alive while the shard has
    /// it.
    mutating func add(_ item: MemoryEntry) {
        count += 1
        if count * 2 > table.count { grow() }
        firstEnd = min(firstEnd, item.validity.end)
        let word = UInt32(truncatingIfNeeded: item.validity.generation?.index ?? 0)
        let tag = UInt32(truncatingIfNeeded: item.name.hash)
        place(Place(item: unsafe UncountedReference(item), tag: tag, word: word))
    }

    /// Replaces an item with one that has a smaller form of its value; returns false if the item is no longer here.
    mutating func replace(_ item: MemoryEntry, by lesser: MemoryEntry) -> Bool {
        guard let position = position(of: item) else { return false }
        (lesser.name, lesser.handle, lesser.validity) = (item.name, item.handle, item.validity)
        lesser.frequency.store(item.frequency.load(ordering: .relaxed), ordering: .relaxed)
        table[position].item = unsafe UncountedReference(lesser)
        return true
    }

    /// Makes the next access to each value due for recording at `moment`, if it was due later.
    mutating func advanceAccesses(to moment: Timestamp) {
        for position in 0..<table.count {
            table[position].item?.use { if moment < $0.validity.accessDue { $0.validity.accessDue = moment } }
        }
    }

    /// Limits the age of each value, in nanoseconds.
    mutating func limitAge(to age: Int64) {
        for position in 0..<table.count {
            table[position].item?.use { item in
                let end = item.created.advanced(byNanoseconds: age)
                if end < item.validity.end { item.validity.end = end }
                firstEnd = min(firstEnd, end)
            }
        }
    }

    /// Returns the items that have expired at `now`.
    ///
    /// Scans all slots, but only if an item may have expired and the last scan was at least 16 s ago: otherwise every
    /// call would scan if all values had short lifetimes.
    mutating func expired(at now: Timestamp) -> [MemoryEntry] {
        // If the clock was set back, the time of the last scan is meaningless.
        let isRested = now < lastLook || !(now < lastLook.advanced(byNanoseconds: Self.restBetweenLooks))
        guard !(now < firstEnd), isRested else { return [] }
        lastLook = now
        firstEnd = .distantFuture
        var expired: [MemoryEntry] = []
        for position in 0..<table.count {
            guard let item = table[position].item else { continue }
            let end = item.use { $0.validity.end }
            if now < end { firstEnd = min(firstEnd, end) } else { expired.append(item.use { $0 }) }
        }
        return expired
    }

    /// The minimum time between scans: 16 s, in nanoseconds.
    ///
    /// So expired values are removed well within a minute, and a scan, which touches every value, runs at most four times
    /// a minute.
    private static var restBetweenLooks: Int64 { 16_000_000_000 }

    /// Removes all items.
    mutating func removeAll() {
        table = AlignedArray(repeating: Place(), count: 16)
        count = 0
        firstEnd = .distantFuture
    }

    private func position(of item: MemoryEntry) -> Int? {
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

    /// Frees a slot, and moves later items up that would otherwise no longer be found.
    private mutating func vacate(_ position: Int) {
        let mask = table.count - 1
        var (hole, position) = (position, position)
        while true {
            position = (position + 1) & mask
            let place = table[position]
            if place.item == nil { break }
            // An item whose preferred slot is at or before the hole must move into it, or it would not be found.
            if (position &- Int(place.tag)) & mask >= (position &- hole) & mask {
                table[hole] = place
                hole = position
            }
        }
        table[hole] = Place()
        count -= 1
    }
}
