// SPDX-License-Identifier: Apache-2.0

import Platform

/// Records that this process has read, each good as long as the generation of its key is what it was.
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
/// Nothing is allocated until a record is kept; a shard then doubles as it fills.
final class RecordTable: Sendable {
    private typealias Shard = [KnownRecord]

    /// 32,768 records in all, of 208 bytes: 6.5 MiB in a process that reads that many keys from disk.
    ///
    /// Beyond that a get looks at the entry, which costs 1 µs.
    private static let shardCapacity = 2048
    /// What a process pays that reads a handful of keys: 6.5 KiB for each shard that one of them belongs to.
    private static let firstCapacity = 32
    /// Places that are looked at for one key, from its own on.
    ///
    /// At the highest load that 20,000 keys make, 61 per
    /// cent, linear probing needs 4 on average for a key that is not there.
    private static let reach = 16

    /// Threads that read other keys seldom meet: a lock is held for some 30 ns of a get's microseconds.
    private let shards = InlineArray<16, Locked<Shard>> { _ in Locked([]) }

    /// What is known of `key`, if that was read under this generation.
    func record(of key: Digest, at generation: Generation) -> KnownRecord? {
        shards[Self.shard(of: key)].withLock { known in
            guard let place = Self.place(of: key, in: known.span), known[place].generation == generation
            else {
                return nil
            }
            return known[place]
        }
    }

    /// Keeps what was read after its generation was looked at, which had no writers.
    func keep(_ record: KnownRecord) {
        shards[Self.shard(of: record.key)].withLock { Self.put(record, in: &$0) }
    }

    /// Drops what is kept for `key`.
    func drop(_ key: Digest) {
        shards[Self.shard(of: key)].withLock { known in
            // It keeps its place, so that those behind it are found.
            if let place = Self.place(of: key, in: known.span) { known[place].generation = .never }
        }
    }

    /// Notes the access time that the entry of `key` has on disk.
    func note(_ key: Digest, accessed: Timestamp) {
        shards[Self.shard(of: key)].withLock { known in
            if let place = Self.place(of: key, in: known.span) { known[place].accessed = accessed }
        }
    }

    private static func shard(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(2) >> 32) & 15
    }

    /// The first of the places where `key` may be; the others follow.
    private static func firstPlace(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(2))
    }

    private static func place(of key: Digest, in known: Span<KnownRecord>) -> Int? {
        let first = firstPlace(of: key)
        for step in 0..<min(reach, known.count) {
            let place = (first &+ step) & (known.count - 1)
            if known[place].key == key { return place }
            if known[place].isVacant { return nil }
        }
        return nil
    }

    private static func put(_ record: KnownRecord, in known: inout Shard) {
        if known.isEmpty { known = Array(repeating: KnownRecord(), count: firstCapacity) }
        let first = firstPlace(of: record.key)
        for step in 0..<reach {
            let place = (first &+ step) & (known.count - 1)
            if known[place].isVacant || known[place].key == record.key {
                known[place] = record
                return
            }
        }
        guard known.count < shardCapacity else {
            // Any of them: what was there is read again when it is wanted.
            let step = Int(truncatingIfNeeded: record.key.word(3)) & (reach - 1)
            known[(first &+ step) & (known.count - 1)] = record
            return
        }
        let previous = known
        known = Array(repeating: KnownRecord(), count: previous.count * 2)
        for record in previous where record.generation != .never { put(record, in: &known) }
        put(record, in: &known)
    }
}

/// A record as it is kept: without what only a look at the metadata tells.
struct KnownRecord {
    let key: Digest
    var generation: Generation
    /// The access time that the entry was seen to have on disk.
    var accessed: Timestamp
    let content: Content
    private let created: Timestamp
    private let expires: Timestamp?
    private let staleUntil: Timestamp?
    private let cost: Duration?

    /// A place where nothing is kept.
    fileprivate init() {
        key = Digest(bytes: InlineArray(repeating: 0))
        generation = .never
        accessed = .distantPast
        content = Content(digest: key, length: 0, checksum: 0)
        created = .distantPast
        expires = nil
        staleUntil = nil
        cost = nil
    }

    /// nil for a record that can't be kept this way: with details, or prolonged by accesses, which are told by
    /// the entry alone.
    init?(_ record: Record, of key: Digest, at generation: Generation, accessed: Timestamp) {
        guard record.details.isEmpty, record.idleLifetime == nil else { return nil }
        self.key = key
        self.generation = generation
        self.accessed = accessed
        content = record.content
        created = record.created
        expires = record.expires
        staleUntil = record.staleUntil
        cost = record.cost
    }

    fileprivate var isVacant: Bool { generation == .never && content.length == 0 && accessed == .distantPast }

    /// Whether it may be given out to anybody.
    func isFresh(at now: Timestamp) -> Bool {
        guard let expires else { return true }
        return now.nanoseconds < expires.nanoseconds
    }

    /// The record but for the text of its key.
    var record: Record {
        var record = Record(content: content, created: created)
        record.expires = expires
        record.staleUntil = staleUntil
        record.cost = cost
        return record
    }
}

extension Generation {
    /// Of no mapping.
    fileprivate static let never = Generation(index: 0, word: 0)
}
