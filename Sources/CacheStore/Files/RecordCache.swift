// SPDX-License-Identifier: Apache-2.0

import Platform

/// A table of the records that this process has read, and of keys without an entry.
///
/// Each item is valid while the key's generation is unchanged.
///
/// A get that finds a record here need not read the entry. This is correct for the same reason as a hit in memory: the
/// generation was loaded before the record was read, it had no writers, and the control file was ready. Any process that
/// changes the record later changes the generation's word first. So if the generation is unchanged, no put or remove has
/// started since then, and the record is current. A sweep may have evicted the entry meanwhile; its value is still valid
/// as long as its object exists. (The model of the generations covers kept copies of values and of records.) If the
/// object is missing or damaged, the caller drops the record and reads the entry. The caller checks the expiration at
/// each use.
///
/// The same holds for the absence of an entry: an entry can't appear unless a put has changed the word first. A put that
/// has returned has changed it. A put that has not returned yet may be seen or not.
///
/// A shard allocates no memory until something is kept in it; it then doubles its size as it fills.
final class RecordCache: Sendable {
    /// The maximum number of slots of a shard.
    ///
    /// All shards together have 32,768 slots of 128 bytes: 4 MiB in a process that reads that many keys from disk. For
    /// further keys a get reads the entry, which costs 1 µs.
    private static let shardCapacity = 2048
    /// The initial number of slots: a process that reads a few keys uses 4 KiB for each shard that one of them belongs
    /// to.
    private static let firstCapacity = 32
    /// The number of slots searched for one key, starting with its first slot.
    ///
    /// At the highest load that 20,000 keys cause, 61 percent, linear probing searches 4 slots on average for a missing
    /// key.
    private static let reach = 16

    /// Threads that read different keys seldom contend: a get takes microseconds, and holds a lock for about 30 ns.
    private let shards = InlineArray<16, Locked<RecordShard>> { _ in Locked(RecordShard()) }
    private let hints = InlineArray<16, ArrayHint> { _ in ArrayHint() }

    /// A remembered record, or the absence of one.
    enum Knowledge {
        case record(CachedRecord)
        /// The key has no entry.
        case absence
    }

    /// Prefetches the slot of `key`, so that a lookup under the lock does not wait for memory.
    func prefetch(_ key: Digest) {
        hints[Self.shard(of: key)].prefetch(Self.firstPlace(of: key))
    }

    /// Returns the record of `key`, or its absence, if it was read under this generation.
    func knowledge(of key: Digest, at generation: Generation) -> Knowledge? {
        shards[Self.shard(of: key)].withLock { (shard) -> Knowledge? in
            guard shard.mapping == generation.mapping, let place = Self.place(of: key, in: shard.places),
                shard.places[place].word == generation.word
            else { return nil }
            switch shard.places[place].use {
            case .record: return .record(shard.places[place])
            case .absence: return .absence
            case .vacant, .dropped: return nil
            }
        }
    }

    /// Keeps a record, or the absence of an entry, that was read after the key's generation was loaded.
    ///
    /// That generation must have had no writers.
    ///
    /// An absence is kept only if there is room: it never replaces a record, which saves more.
    func keep(_ record: CachedRecord, at generation: Generation) {
        let number = Self.shard(of: record.key)
        shards[number].withLock { (shard) -> Void in
            shard.follow(generation)
            var record = record
            record.word = generation.word
            Self.put(record, in: &shard.places)
            hints[number].follow(shard.places)
        }
    }

    /// Drops the record of `key`, or its absence.
    func drop(_ key: Digest) {
        shards[Self.shard(of: key)].withLock { (shard) -> Void in
            // The slot stays occupied, so that a search still finds the keys in the slots after it.
            if let place = Self.place(of: key, in: shard.places) { shard.places[place].use = .dropped }
        }
    }

    /// Updates the time of the last use of the entry of `key` that is recorded on disk.
    func note(_ key: Digest, accessed: Timestamp) {
        shards[Self.shard(of: key)].withLock { (shard) -> Void in
            if let place = Self.place(of: key, in: shard.places) { shard.places[place].accessed = accessed }
        }
    }

    private static func shard(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(2) >> 32) & 15
    }

    /// Returns the first of the slots where `key` may be; the others follow.
    private static func firstPlace(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(2))
    }

    private static func place(of key: Digest, in places: borrowing AlignedArray<CachedRecord>) -> Int? {
        let first = firstPlace(of: key)
        for step in 0..<min(reach, places.count) {
            let place = (first &+ step) & (places.count - 1)
            if places[place].key == key { return place }
            if places[place].use == .vacant { return nil }
        }
        return nil
    }

    private static func put(_ record: CachedRecord, in places: inout AlignedArray<CachedRecord>) {
        if places.count == 0 { places = AlignedArray(repeating: CachedRecord(), count: firstCapacity) }
        let first = firstPlace(of: record.key)
        for step in 0..<reach {
            let place = (first &+ step) & (places.count - 1)
            if places[place].use == .vacant || places[place].key == record.key {
                places[place] = record
                return
            }
        }
        guard places.count < shardCapacity else {
            if record.use == .absence { return }
            // Any slot will do: the record that it loses is read from disk again when it is needed.
            let step = Int(truncatingIfNeeded: record.key.word(3)) & (reach - 1)
            places[(first &+ step) & (places.count - 1)] = record
            return
        }
        var larger = AlignedArray(repeating: CachedRecord(), count: places.count * 2)
        for place in 0..<places.count where places[place].use.isOfValue { put(places[place], in: &larger) }
        put(record, in: &larger)
        places = larger
    }
}

/// A part of the table with its own lock.
struct RecordShard: ~Copyable, Sendable {
    /// The mapping that the words of all slots were read from (``Generation/mapping``).
    var mapping: UInt = 0
    var places = AlignedArray<CachedRecord>()

    /// Drops everything if `generation` belongs to another mapping: records of the previous mapping are no longer
    /// current.
    mutating func follow(_ generation: Generation) {
        if mapping == generation.mapping { return }
        mapping = generation.mapping
        places = AlignedArray()
    }
}

/// A slot of the table: the record of one key, or its absence.
///
/// It takes 128 bytes, two cache lines: the slots that a get reads are usually no longer in the processor's cache.
struct CachedRecord: Sendable {
    /// The content of the slot.
    enum Use: UInt8 {
        case vacant, record, absence, dropped

        fileprivate var isOfValue: Bool { self == .record || self == .absence }
    }

    let key: Digest
    /// The word of the generation table.
    fileprivate var word: UInt64 = 0
    /// The time of the last use of the entry that is recorded on disk.
    var accessed: Timestamp
    let record: RecordCore
    fileprivate var use: Use
}

extension CachedRecord {
    /// Creates a vacant slot.
    fileprivate init() {
        self.init(absenceOf: Digest(bytes: InlineArray(repeating: 0)))
        use = .vacant
    }

    init(absenceOf key: Digest) {
        let content = Content(digest: key, length: 0, checksum: 0)
        let record = Record(content: content, created: .distantPast).core
        self.init(key: key, accessed: .distantPast, record: record, use: .absence)
    }

    /// Creates a slot for a record; returns nil for a record with details or with a sliding expiration.
    ///
    /// A slot has no room for details, and only the entry shows the accesses that prolong a value's life.
    init?(_ record: Record, of key: Digest, accessed: Timestamp) {
        guard !record.hasDetails, record.idleLifetime == nil else { return nil }
        self.init(key: key, accessed: accessed, record: record.core, use: .record)
    }
}
