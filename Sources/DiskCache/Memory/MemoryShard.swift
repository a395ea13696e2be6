// SPDX-License-Identifier: Apache-2.0

import Platform

/// One part of the memory tier's map: values by the UTF-8 bytes of their key, and their form.
///
/// A table of open addresses leads to slots that stay where they are. Forms of one key have the same
/// hash and stand one after the other in the table.
struct MemoryShard: Sendable {
    /// A value and what belongs to it.
    struct Slot: Sendable {
        var key: String
        var form: MemoryForm
        /// Nil where the slot is free.
        var item: (any MemoryItem)?
        var stamp: MemoryStamp
        /// Its place in the eviction queues.
        var handle: EvictionQueues<MemoryPlace>.Handle
        /// Hits since it came, up to 3.
        var frequency: UInt8
        var isDiscardable: Bool
        var tag: UInt32
        /// Tells it from every other value that this tier ever held.
        var serial: UInt64
    }

    /// What a value has earned, and hands on to the one that replaces it.
    struct Standing: Sendable {
        let queue: EvictionQueues<MemoryPlace>.Queue
        let frequency: UInt8
    }

    /// An address in the table.
    private struct Address: Sendable {
        /// The low half of the hash.
        var tag: UInt32 = 0
        /// The slot's number, or -1 where this is empty.
        var slot: Int32 = -1
    }

    private var table = [Address](repeating: Address(), count: 8)
    private var slots: [Slot] = []
    private var free: [Int32] = []

    /// Number of values.
    var count: Int { slots.count - free.count }

    /// The slot of this key and form.
    func find(_ hash: UInt64, _ key: String, _ form: MemoryForm) -> Int? {
        let tag = UInt32(truncatingIfNeeded: hash)
        let mask = table.count - 1
        var position = Int(tag) & mask
        while true {
            let address = table[position]
            if address.slot < 0 { return nil }
            if address.tag == tag, isMatch(Int(address.slot), key, form) { return Int(address.slot) }
            position = (position + 1) & mask
        }
    }

    /// The slots of all forms of this key.
    func findAll(_ hash: UInt64, _ key: String) -> [Int] {
        let tag = UInt32(truncatingIfNeeded: hash)
        let mask = table.count - 1
        var position = Int(tag) & mask
        var found: [Int] = []
        while table[position].slot >= 0 {
            let slot = Int(table[position].slot)
            if table[position].tag == tag, isMatch(slot, key, nil) { found.append(slot) }
            position = (position + 1) & mask
        }
        return found
    }

    private func isMatch(_ slot: Int, _ key: String, _ form: MemoryForm?) -> Bool {
        if let form, slots[slot].form != form { return false }
        return slots[slot].key.hasSameBytes(as: key)
    }

    /// The number of the slot that the next ``fill(_:with:)`` has to be for.
    var nextSlot: Int { free.last.map(Int.init) ?? slots.count }

    /// Puts a value in the slot ``nextSlot``; there must be none for its key and form.
    mutating func fill(_ number: Int, with slot: Slot) {
        if (count + 1) * 2 > table.count { grow() }
        if free.popLast() == nil { slots.append(slot) } else { slots[number] = slot }
        place(Address(tag: slot.tag, slot: Int32(number)))
    }

    /// Takes the value out of a slot, if there is one.
    mutating func clear(_ number: Int) -> (slot: Slot, item: any MemoryItem)? {
        let slot = slots[number]
        guard let item = slot.item else { return nil }
        slots[number].item = nil
        slots[number].key = ""
        free.append(Int32(number))
        vacate(slot.tag, number)
        return (slot, item)
    }

    /// The value in a slot, if it still is the one with this serial.
    func item(at number: Int, serial: UInt64) -> (any MemoryItem)? {
        // Behind the end where the tier was emptied since; a free slot keeps its last serial.
        guard slots.indices.contains(number), slots[number].serial == serial else { return nil }
        return slots[number].item
    }

    /// Changes a value where it is.
    mutating func update<Result>(_ number: Int, _ body: (inout Slot) -> Result) -> Result {
        body(&slots[number])
    }

    private mutating func place(_ address: Address) {
        let mask = table.count - 1
        var position = Int(address.tag) & mask
        while table[position].slot >= 0 { position = (position + 1) & mask }
        table[position] = address
    }

    private mutating func grow() {
        let old = table
        table = Array(repeating: Address(), count: old.count * 2)
        for address in old where address.slot >= 0 { place(address) }
    }

    /// Empties an address, and moves up those behind it that would no longer be found.
    private mutating func vacate(_ tag: UInt32, _ number: Int) {
        let mask = table.count - 1
        var hole = Int(tag) & mask
        while table[hole].slot != Int32(number) { hole = (hole + 1) & mask }
        var position = hole
        while true {
            position = (position + 1) & mask
            let address = table[position]
            if address.slot < 0 { break }
            // Those at or behind their home as seen from the hole stay findable only if they move.
            let distance = (position - Int(address.tag)) & mask
            if distance >= (position - hole) & mask {
                table[hole] = address
                hole = position
            }
        }
        table[hole] = Address()
    }
}
