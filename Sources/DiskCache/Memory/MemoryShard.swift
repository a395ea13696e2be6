// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// One part of the memory tier's map: values by the UTF-8 bytes of their key, and their form.
///
/// A table of open addresses, of 16 bytes each, leads to slots that stay where they are. A hit reads one cache line
/// of the table; that tells where all the others are, which then come at the same time: the slot, the value and its
/// word of the generation table. The slot repeats the beginning of the key, so that the key's own memory is looked
/// at only where it is longer than ``KeyBytes/Head/capacity`` bytes. What a hit does without is in ``Details``.
/// Forms of one key have the same hash and stand one after the other in the table.
struct MemoryShard: ~Copyable, Sendable {
    /// What a hit needs of a value: 64 bytes, one cache line.
    struct Slot: Sendable {
        let head: KeyBytes.Head
        /// Nil where the slot is free.
        var item: (any MemoryItem)?
        /// The word by which it may be held.
        fileprivate let word: UInt64
        /// Until then it may be given out as long as that word is current; from then on its stamp is to be judged.
        fileprivate(set) var due: Timestamp
        /// The word's place in the generation table.
        fileprivate let index: Int32
        fileprivate let shape: Shape
        /// Hits since it came, up to 3.
        var frequency: UInt8
        /// Whether the item is as it came; else it has to be judged at each use.
        fileprivate(set) var isWhole = true

        /// How long the key is, as far as that fits, and whether it is of the form ``MemoryForm/bytes``.
        ///
        /// A key of 255 bytes or more is longer than its head and compared as a whole anyway.
        struct Shape: Equatable, Sendable {
            private let number: UInt16

            @inline(__always)
            init(_ bytes: KeyBytes, _ form: MemoryForm) {
                number = UInt16(truncatingIfNeeded: min(bytes.length, 255)) << 1 | (form == .bytes ? 1 : 0)
            }
        }

        fileprivate init(_ content: Content, due: Timestamp) {
            head = content.bytes.head
            shape = Shape(content.bytes, content.details.form)
            item = content.item
            word = content.details.stamp.generation?.word ?? 0
            index = Int32(truncatingIfNeeded: content.details.stamp.generation?.index ?? 0)
            frequency = content.frequency
            self.due = due
        }
    }

    /// What belongs to a value besides.
    struct Details: Sendable {
        let hash: UInt64
        var key: String
        let form: MemoryForm
        var stamp: MemoryStamp
        /// Tells it from every other value that this tier ever held.
        let serial: UInt64
        /// Its place in the eviction queues.
        let handle: EvictionQueues<MemoryPlace>.Handle
        var isDiscardable: Bool
    }

    /// A value on its way in, or out.
    struct Content: Sendable {
        let bytes: KeyBytes
        let item: any MemoryItem
        let frequency: UInt8
        let details: Details
    }

    /// What a value has earned, and hands on to the one that replaces it.
    struct Standing: Sendable {
        let queue: EvictionQueues<MemoryPlace>.Queue
        let frequency: UInt8
    }

    /// An address in the table: the number of a slot, part of its hash, and hints where the rest is that a hit needs.
    struct Address: Sendable {
        private let number: UInt32
        private let tag: UInt32
        /// Where the value is.
        let item: LocationHint
        /// Where its word of the generation table is.
        let word: LocationHint

        /// An empty one.
        init() {
            (number, tag) = (0, 0)
            (item, word) = (LocationHint(), LocationHint())
        }

        init(_ slot: Int, _ hash: UInt64, item: LocationHint, word: LocationHint) {
            number = UInt32(slot + 1)
            tag = Self.tag(hash)
            self.item = item
            self.word = word
        }

        var isEmpty: Bool { number == 0 }
        /// The number of the slot.
        var slot: Int { Int(number) - 1 }

        func isMarked(_ tag: UInt32) -> Bool { self.tag == tag }

        /// Bits that mostly choose neither the shard, which are above, nor the place in the table, below.
        static func tag(_ hash: UInt64) -> UInt32 {
            UInt32(truncatingIfNeeded: hash >> 26)
        }
    }

    /// What a place can name.
    private static let capacity = Int(Int32.max)

    /// Hits so far.
    ///
    /// The first of all: in the cache line of the lock, as the only thing that each hit changes. So threads that use a
    /// shard by turns hand one line to each other.
    private(set) var hits = 0
    private var table = AlignedArray(repeating: Address(), count: 16)
    private var slots = AlignedArray<Slot>()
    /// As many as slots.
    private var details = AlignedArray<Details>()
    private var free: [Int32] = []
    private var items = LocationHint.Window()
    private var words = LocationHint.Window()
    /// The mapping that the slots' words belong to; who is of another one is judged at each use.
    private var mapping: UInt = 0
    /// What the values here are copies of, for a hit to find without another lock; the tier keeps it alive.
    var store: UncountedReference<Store>?

    /// Number of values.
    var count: Int { slots.count - free.count }

    /// Whether another value can't be told apart: there are as many as places can name.
    var isFull: Bool { count >= Self.capacity }

    /// The slot of this key and form.
    @inline(__always)
    func find(_ bytes: KeyBytes, _ key: String, _ form: MemoryForm) -> Int? {
        let tag = Address.tag(bytes.hash)
        let mask = table.count &- 1
        let isPlain = bytes.length <= KeyBytes.Head.capacity && form == .bytes
        let shape = Slot.Shape(bytes, form)
        var position = Int(truncatingIfNeeded: bytes.hash) & mask
        while true {
            // The table has a place for every number below the mask, and names no slots but those there are.
            let address = unsafe table[unchecked: position]
            if address.isEmpty { return nil }
            let slot = address.slot
            if address.isMarked(tag) {
                // They lie far apart: all are on their way at the same time.
                address.item.prefetchObject(items)
                address.word.prefetch(words)
                if unsafe slots[unchecked: slot].head == bytes.head,
                    unsafe slots[unchecked: slot].shape == shape,
                    isPlain || Self.isSame(details, slot, key, form)
                {
                    return slot
                }
            }
            position = (position &+ 1) & mask
        }
    }

    /// Whether what is not told by a slot alone is the same: a long key, or a form of a typed view.
    ///
    /// Apart from the rest, and not of the shard as a whole, which would be copied for each hit.
    @inline(never)
    private static func isSame(
        _ details: borrowing AlignedArray<Details>,
        _ slot: Int,
        _ key: String,
        _ form: MemoryForm
    ) -> Bool {
        details[slot].form == form && details[slot].key.hasSameBytes(as: key)
    }

    /// The slots of all forms of this key.
    func findAll(_ bytes: KeyBytes, _ key: String) -> [Int] {
        let tag = Address.tag(bytes.hash)
        let mask = table.count - 1
        var position = Int(truncatingIfNeeded: bytes.hash) & mask
        var found: [Int] = []
        while !table[position].isEmpty {
            let address = table[position]
            if address.isMarked(tag), isMatch(address.slot, bytes, key) { found.append(address.slot) }
            position = (position + 1) & mask
        }
        return found
    }

    private func isMatch(_ slot: Int, _ bytes: KeyBytes, _ key: String) -> Bool {
        slots[slot].head == bytes.head && details[slot].key.hasSameBytes(as: key)
    }

    /// The value of this key and form, where it may be given out at `now` without a look at its stamp.
    ///
    /// Counts it as a hit then. No allocation, no system call; one count of a reference.
    @inline(__always)
    mutating func settled(_ bytes: KeyBytes, _ key: String, _ form: MemoryForm, at now: Timestamp)
        -> MemoryFinding
    {
        guard let number = find(bytes, key, form) else { return .absent }
        let (word, index) = unsafe (slots[unchecked: number].word, Int(slots[unchecked: number].index))
        // The word is looked at with the lock held: whoever has removed the value since did so before.
        guard now < (unsafe slots[unchecked: number].due), let store,
            store.use({ $0.countsHit(word, at: index, of: mapping) }),
            let item = hit(number)
        else { return .unsettled }
        return .hit(item)
    }

    /// The number of the slot that the next ``fill(_:with:)`` has to be for.
    var nextSlot: Int { free.last.map(Int.init) ?? slots.count }

    /// Puts a value in the slot ``nextSlot``; there must be none for its key and form.
    mutating func fill(_ number: Int, with content: Content) {
        if (count + 1) * 2 > table.count { grow() }
        if let generation = content.details.stamp.generation, generation.mapping != mapping {
            mapping = generation.mapping
            // Theirs is another one.
            for slot in 0..<slots.count { slots[slot].due = .distantPast }
        }
        let slot = Slot(content, due: content.details.stamp.due)
        if free.popLast() == nil {
            slots.append(slot)
            details.append(content.details)
        } else {
            slots[number] = slot
            details[number] = content.details
        }
        place(number)
    }

    /// Takes the value out of a slot, if there is one.
    mutating func clear(_ number: Int) -> (details: Details, item: any MemoryItem, frequency: UInt8)? {
        guard let item = slots[number].item else { return nil }
        let content = (details[number], item, slots[number].frequency)
        slots[number].item = nil
        details[number].key = ""
        free.append(Int32(number))
        vacate(number)
        return content
    }

    /// The value in a slot, if it still is the one with this serial.
    func item(at number: Int, serial: UInt64) -> (any MemoryItem)? {
        // Behind the end where the tier was emptied since; a free slot keeps its last serial.
        guard number < slots.count, details[number].serial == serial else { return nil }
        return slots[number].item
    }

    /// Changes a value where it is.
    mutating func update<Result>(_ number: Int, _ body: (inout Slot, inout Details) -> Result) -> Result {
        body(&slots[number], &details[number])
    }

    /// Counts a hit of a slot; gives its value.
    @inline(__always)
    mutating func hit(_ number: Int) -> (any MemoryItem)? {
        hits &+= 1
        // Only where it changes something: else threads would take the slot's cache line from each other.
        if slots[number].frequency < EvictionQueues<MemoryPlace>.highestFrequency {
            slots[number].frequency &+= 1
        }
        return unsafe slots[unchecked: number].item
    }

    /// Takes back a hit that turned out to be none.
    mutating func takeBackHit() { hits -= 1 }

    /// Changes a value where it is, with a look at ``store``.
    mutating func judge<Result>(
        _ number: Int,
        _ body: (UncountedReference<Store>?, inout Details) -> Result
    ) -> Result {
        let result = body(store, &details[number])
        let stamp = details[number].stamp
        let isSettled = slots[number].isWhole && stamp.generation?.mapping == mapping
        slots[number].due = isSettled ? stamp.due : .distantPast
        return result
    }

    /// Has the next use of each value judged by `moment`.
    mutating func advanceAccesses(to moment: Timestamp) {
        for slot in 0..<slots.count where moment < details[slot].stamp.accessDue {
            details[slot].stamp.accessDue = moment
            slots[slot].due = min(slots[slot].due, moment)
        }
    }

    /// Puts a lesser form of its value in a slot.
    mutating func discard(_ number: Int, for item: any MemoryItem, isDiscardable: Bool) {
        slots[number].item = item
        slots[number].isWhole = false
        slots[number].due = .distantPast
        details[number].isDiscardable = isDiscardable
    }

    /// Gives up all values at once; the slots' items live on in whoever holds them.
    mutating func removeAll() {
        table = AlignedArray(repeating: Address(), count: 16)
        slots = AlignedArray()
        details = AlignedArray()
        free = []
    }

    private mutating func place(_ number: Int) {
        guard let item = slots[number].item else { return }
        let hash = details[number].hash
        let word = details[number].stamp.generation.map { LocationHint(address: $0.address, &words) }
        let mask = table.count - 1
        var position = Int(truncatingIfNeeded: hash) & mask
        while !table[position].isEmpty { position = (position + 1) & mask }
        table[position] = Address(
            number,
            hash,
            item: LocationHint(item, &items),
            word: word ?? LocationHint()
        )
    }

    private mutating func grow() {
        table = AlignedArray(repeating: Address(), count: table.count * 2)
        for number in 0..<slots.count { place(number) }
    }

    /// Empties the address of a slot, and moves up those behind it that would no longer be found.
    private mutating func vacate(_ number: Int) {
        let mask = table.count - 1
        var hole = Int(truncatingIfNeeded: details[number].hash) & mask
        while table[hole].slot != number { hole = (hole + 1) & mask }
        var position = hole
        while true {
            position = (position + 1) & mask
            let address = table[position]
            if address.isEmpty { break }
            // Those at or behind their home as seen from the hole stay findable only if they move.
            // (Wrapping: the hash may be any number.)
            let home = Int(truncatingIfNeeded: details[address.slot].hash)
            if (position &- home) & mask >= (position &- hole) & mask {
                table[hole] = address
                hole = position
            }
        }
        table[hole] = Address()
    }
}
