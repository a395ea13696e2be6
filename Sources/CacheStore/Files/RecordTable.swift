// SPDX-License-Identifier: Apache-2.0

import Platform

/// Records that this process has read, and keys that it found without one, each valid as long as the generation of its key is
/// the same.
///
/// A get that finds one here needs no look at the entry. That is right for the reason that makes a hit in memory
/// right: the generation was looked at before the record was read, with no writer in it and the control file
/// ready, and whoever changes the record afterwards changes the word first. So where the generation, looked at
/// now, is the same, no put or remove has begun since, and the record is that of this moment; what may have
/// happened is that a sweep has evicted the entry, and then its value is good as long as its object is there
/// (the model of the generations has both: a copy that is kept is a copy, be it of a value or of a record).
/// Where the object is gone or damaged, the caller drops the record and reads the entry. Expiry is judged by the
/// caller at each use.
///
/// That a key has no entry is kept by the same argument: an entry can't appear unless a put has changed the word
/// first. Whoever's put has returned has done so, and whoever's has not may be seen or not.
///
/// Nothing is allocated until something is kept; a shard then doubles as it fills.
final class RecordTable: Sendable {
    /// 32,768 places in all, of 128 bytes: 4 MiB in a process that reads that many keys from disk.
    ///
    /// Beyond that a get looks at the entry, which costs 1 µs.
    private static let shardCapacity = 2048
    /// What a process pays that reads a handful of keys: 4 KiB for each shard that one of them belongs to.
    private static let firstCapacity = 32
    /// Places that are looked at for one key, from its own on.
    ///
    /// At the highest load that 20,000 keys make, 61 per
    /// cent, linear probing needs 4 on average for a key that is not there.
    private static let reach = 16

    /// Threads that read other keys seldom meet: a lock is held for some 30 ns of a get's microseconds.
    private let shards = InlineArray<16, Locked<RecordShard>> { _ in Locked(RecordShard()) }
    private let hints = InlineArray<16, ArrayHint> { _ in ArrayHint() }

    /// A remembered record, or the absence of one.
    enum Knowledge {
        case record(KnownRecord)
        /// It has no entry.
        case absence
    }

    /// Fetches the place of `key` from memory without waiting, so that a look under a lock does not wait for it.
    func prefetch(_ key: Digest) {
        hints[Self.shard(of: key)].prefetch(Self.firstPlace(of: key))
    }

    /// The knowledge about `key`, if it was read under this generation.
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

    /// Keeps a record that was read, or the absence of an entry, after a look at the key's generation, which had no writers.
    ///
    /// An absence is kept if there is room: it never takes the place of a record, which saves more.
    func keep(_ record: KnownRecord, at generation: Generation) {
        let number = Self.shard(of: record.key)
        shards[number].withLock { (shard) -> Void in
            shard.follow(generation)
            var record = record
            record.word = generation.word
            Self.put(record, in: &shard.places)
            hints[number].follow(shard.places)
        }
    }

    /// Drops the knowledge about `key`.
    func drop(_ key: Digest) {
        shards[Self.shard(of: key)].withLock { (shard) -> Void in
            // It keeps its place, so that those behind it are found.
            if let place = Self.place(of: key, in: shard.places) { shard.places[place].use = .dropped }
        }
    }

    /// Notes the last use of the entry of `key` that is known from the disk.
    func note(_ key: Digest, accessed: Timestamp) {
        shards[Self.shard(of: key)].withLock { (shard) -> Void in
            if let place = Self.place(of: key, in: shard.places) { shard.places[place].accessed = accessed }
        }
    }

    private static func shard(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(2) >> 32) & 15
    }

    /// The first of the places where `key` may be; the others follow.
    private static func firstPlace(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(2))
    }

    private static func place(of key: Digest, in places: borrowing AlignedArray<KnownRecord>) -> Int? {
        let first = firstPlace(of: key)
        for step in 0..<min(reach, places.count) {
            let place = (first &+ step) & (places.count - 1)
            if places[place].key == key { return place }
            if places[place].use == .vacant { return nil }
        }
        return nil
    }

    private static func put(_ record: KnownRecord, in places: inout AlignedArray<KnownRecord>) {
        if places.count == 0 { places = AlignedArray(repeating: KnownRecord(), count: firstCapacity) }
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
            // Any of them: the record that was there is read again when it is needed.
            let step = Int(truncatingIfNeeded: record.key.word(3)) & (reach - 1)
            places[(first &+ step) & (places.count - 1)] = record
            return
        }
        var larger = AlignedArray(repeating: KnownRecord(), count: places.count * 2)
        for place in 0..<places.count where places[place].use.isOfValue { put(places[place], in: &larger) }
        put(record, in: &larger)
        places = larger
    }
}

/// A part of the table, under a lock of its own.
struct RecordShard: ~Copyable, Sendable {
    /// What the words of all places were read from (``Generation/mapping``).
    var mapping: UInt = 0
    var places = AlignedArray<KnownRecord>()

    /// Forgets everything if `generation` is of another mapping: knowledge under the one before is not current any more.
    mutating func follow(_ generation: Generation) {
        if mapping == generation.mapping { return }
        mapping = generation.mapping
        places = AlignedArray()
    }
}

/// A place in the table: the knowledge about one key.
///
/// 128 bytes, two cache lines: a get looks at ones that have left the processor's cache.
struct KnownRecord: Sendable {
    /// What the place holds.
    enum Use: UInt8 {
        case vacant, record, absence, dropped

        fileprivate var isOfValue: Bool { self == .record || self == .absence }
    }

    let key: Digest
    /// The word of the generation table.
    fileprivate var word: UInt64 = 0
    /// The last use of the entry that is known from the disk.
    var accessed: Timestamp
    let record: RecordCore
    fileprivate var use: Use
}

extension KnownRecord {
    /// A place where nothing is kept.
    fileprivate init() {
        self.init(absenceOf: Digest(bytes: InlineArray(repeating: 0)))
        use = .vacant
    }

    init(absenceOf key: Digest) {
        let content = Content(digest: key, length: 0, checksum: 0)
        let record = Record(content: content, created: .distantPast).core
        self.init(key: key, accessed: .distantPast, record: record, use: .absence)
    }

    /// nil for a record that can't be kept this way: with details, or prolonged by accesses, which are told by
    /// the entry alone.
    init?(_ record: Record, of key: Digest, accessed: Timestamp) {
        guard !record.hasDetails, record.idleLifetime == nil else { return nil }
        self.init(key: key, accessed: accessed, record: record.core, use: .record)
    }
}
