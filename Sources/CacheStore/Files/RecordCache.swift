// SPDX-License-Identifier: Apache-2.0

import Platform

/// Records that this process has read, and keys found without an entry, each valid while the key's generation is unchanged.
///
/// A get that finds a record here need not read the entry. This is correct for the same reason as a hit in memory. The
/// generation was loaded before the record was read, without writers and with the control file ready, and any process that
/// changes the record afterwards changes the word first. So if the generation is still the same, no put or remove has
/// started since, and the record is current. A sweep may have evicted the entry meanwhile; then its value is valid as long
/// as its object exists (the model of the generations covers both: a kept copy of a value and of a record). If the object is
/// missing or damaged, the caller drops the record and reads the entry. The caller checks the expiration at each use.
///
/// The absence of an entry is kept by the same argument: an entry can't appear unless a put has changed the word first. Puts
/// that have returned have done so; puts that have not may be seen or not.
///
/// Nothing is allocated until something is kept; a shard then doubles as it fills.
/// Nothing is allocated until something is kept; a shard then doubles as it fills.
final class RecordCache: Sendable {
    /// The largest number of slots of a shard.
    ///
    /// 32,768 slots in all, of 128 bytes: 4 MiB in a process that reads that many keys from disk.
    ///
    /// Beyond that a get reads the entry, which costs 1 µs.
    private static let shardCapacity = 2048
    /// The first number of slots: a process that reads a few keys pays 4 KiB for each shard that has one of them.
    private static let firstCapacity = 32
    /// The number of slots searched for one key, starting with its first slot.
    ///
    /// At the highest load that 20,000 keys make, 61 per cent, linear probing needs 4 on average for a missing key.
    private static let reach = 16

    /// Threads that read different keys seldom contend: a lock is held for about 30 ns of a get's microseconds.
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

    /// Keeps a record, or the absence of an entry, that was read after the key's generation, which had no writers.
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
            // The slot stays occupied, so that a search finds the keys behind it.
            if let place = Self.place(of: key, in: shard.places) { shard.places[place].use = .dropped }
        }
    }

    /// Updates the last use recorded on disk for the entry of `key`.
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
            // Any slot will do: its previous record is read again when it is needed.
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

    /// Drops everything if `generation` is of another mapping: records under the previous one are no longer current.
    mutating func follow(_ generation: Generation) {
        if mapping == generation.mapping { return }
        mapping = generation.mapping
        places = AlignedArray()
    }
}

/// A slot of the table: the record of one key, or its absence.
///
/// 128 bytes, two cache lines, because a get reads slots that are no longer in the processor's cache.
struct CachedRecord: Sendable {
    /// The content of the slot.
    enum Use: UInt8 {
        case vacant, record, absence, dropped

        fileprivate var isOfValue: Bool { self == .record || self == .absence }
    }

    let key: Digest
    /// The word of the generation table.
    fileprivate var word: UInt64 = 0
    /// The last use of the entry recorded on disk.
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

    /// Fails for a record that can't be kept this way: with details, or prolonged by accesses, which only the entry shows.
    init?(_ record: Record, of key: Digest, accessed: Timestamp) {
        guard !record.hasDetails, record.idleLifetime == nil else { return nil }
        self.init(key: key, accessed: accessed, record: record.core, use: .record)
    }
}
