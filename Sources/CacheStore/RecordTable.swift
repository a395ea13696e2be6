// SPDX-License-Identifier: Apache-2.0

import Platform

/// Records that this process has read, each good as long as the generation of its key is what it was.
///
/// A get that finds one here needs no look at the entry. That is right for the reason that makes a hit in memory
/// right: the generation was looked at before the record was read, with no writer in it and the control file
/// ready, and whoever changes the record afterwards changes the word first. So where the generation, looked at
/// now, is the same, no put or remove has begun since, and the record is that of this moment; what may have
/// happened is that a sweep has evicted the entry, and then its value is good as long as its object is there
/// (``GenerationModel`` in the tests has both: a copy that is kept is a copy, be it of a value or of a record).
/// Where the object is gone, the caller drops the record and reads the entry. Expiry is judged by the caller at
/// each use.
///
/// Nothing is allocated until a record is kept. A shard then doubles as it fills.
final class RecordTable: Sendable {
    private struct Slot {
        var fingerprint: UInt64 = 0
        var generation = Generation(index: 0, word: 0)
        var entry: StoredEntry?
    }

    private typealias Shard = [Slot]

    /// Threads that read other keys seldom meet: a lock is held for some 30 ns of a get's microseconds.
    private static let shardCount = 16
    /// 32,768 records in all: with a key of 20 bytes about 500 bytes each, 16 MiB if a process reads that many
    /// keys that its memory tier has not. Beyond that a get looks at the entry, which costs 1 µs.
    private static let shardCapacity = 2048
    /// What a process pays that reads a handful of keys: 2.5 KiB a shard.
    private static let firstCapacity = 64
    /// Slots that are looked at for one key, from its own place on: 640 bytes that follow each other.
    private static let reach = 16
    /// In bytes: longer records are rare, and would make the table's size a matter of their details.
    private static let longestRecord = 256

    private let shards: [Locked<Shard>.Box] = (0..<shardCount).map { _ in Locked<Shard>.Box([]) }

    /// The record of `key`, if it was kept under this generation.
    func entry(of key: Digest, at generation: Generation) -> StoredEntry? {
        let fingerprint = key.word(2)
        let found = shards[Self.shard(of: fingerprint)].value.withLock { slots -> StoredEntry? in
            guard let place = Self.find(fingerprint, in: slots),
                slots[place].generation == generation
            else { return nil }
            return slots[place].entry
        }
        return found?.key == key ? found : nil
    }

    /// Keeps a record that was read after `generation` was looked at, which had no writers.
    func keep(_ entry: StoredEntry, at generation: Generation) {
        guard entry.record != nil, entry.bytes.count <= Self.longestRecord else { return }
        let fingerprint = entry.key.word(2)
        let slot = Slot(fingerprint: fingerprint, generation: generation, entry: entry)
        shards[Self.shard(of: fingerprint)].value.withLock { Self.put(slot, in: &$0) }
    }

    /// Drops what is kept for `key`.
    func drop(_ key: Digest) {
        let fingerprint = key.word(2)
        shards[Self.shard(of: fingerprint)].value.withLock { slots in
            if let place = Self.find(fingerprint, in: slots) { slots[place].entry = nil }
        }
    }

    private static func shard(of fingerprint: UInt64) -> Int {
        Int(fingerprint >> 32) & (shardCount - 1)
    }

    private static func find(_ fingerprint: UInt64, in slots: Shard) -> Int? {
        guard !slots.isEmpty else { return nil }
        for step in 0..<reach {
            let place = (Int(truncatingIfNeeded: fingerprint) &+ step) & (slots.count - 1)
            // One that was dropped keeps its fingerprint, so that those behind it are found.
            if slots[place].fingerprint == fingerprint { return place }
            if slots[place].fingerprint == 0 { return nil }
        }
        return nil
    }

    private static func put(_ slot: Slot, in slots: inout Shard) {
        if slots.isEmpty { slots = Array(repeating: Slot(), count: firstCapacity) }
        for step in 0..<reach {
            let place = (Int(truncatingIfNeeded: slot.fingerprint) &+ step) & (slots.count - 1)
            if slots[place].fingerprint == slot.fingerprint || slots[place].entry == nil {
                slots[place] = slot
                return
            }
        }
        guard slots.count < shardCapacity else {
            // Whichever: what was there is read again when it is wanted.
            let step = Int(slot.fingerprint >> 56) & (reach - 1)
            slots[(Int(truncatingIfNeeded: slot.fingerprint) &+ step) & (slots.count - 1)] = slot
            return
        }
        let previous = slots
        slots = Array(repeating: Slot(), count: previous.count * 2)
        for slot in previous where slot.entry != nil { put(slot, in: &slots) }
        put(slot, in: &slots)
    }
}
