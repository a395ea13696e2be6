// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// A value that was found, or, with `()` for the value, an entry that may be given out.
package struct StoreHit<Value: ~Copyable>: ~Copyable {
    package let value: Value
    /// The entry as it was read; nil if a remembered record was used, which the generation shows to be current.
    package let stored: StoredEntry?
    /// Without the text of the key if the entry was not read.
    package let record: Record
    package let isStale: Bool
    /// The word of the generation table before the record was read, by which the value may be held in memory;
    /// nil if it may not be held without another look at the record.
    package let generation: Generation?
    /// Until when a value held in memory may be given out without a look at the disk; nil: for ever.
    package var heldUntil: Timestamp?
}

extension StoreHit: Copyable where Value: Copyable {}
extension StoreHit: Sendable where Value: Sendable & ~Copyable {}

extension StoreHit<Void> {
    init(_ record: Record, stored: StoredEntry?, isStale: Bool = false, _ generation: Generation?) {
        self.init(value: (), stored: stored, record: record, isStale: isStale, generation: generation)
    }
}

extension Store {
    /// How often a read follows a record that changed under it.
    ///
    /// Each round means that another process has published a new value and a sweep has deleted the old one in
    /// the microseconds between two calls.
    private static let readAttempts = 16

    /// The value of `key`, or nil: missing, expired, dangling or damaged.
    ///
    /// Takes no lock on disk and never waits. Three system calls for a hit (`openat2`, `read`, `close`) on a key
    /// that has not changed since this process has read its record, one more (`getxattrat`) if it has; one
    /// or two more if the access time is due. None for a miss on a key that was never put since the directory
    /// was made, for most keys that were removed before the filter was last made, and for a key that has not changed
    /// since this process last found it missing; else one. A record in
    /// sidecar form costs six more than `getxattrat` (four where the file system has no attributes).
    package func get(_ key: Digest, now: Timestamp, allowingStale: Bool) throws(CacheError) -> StoreHit<Data>?
    {
        try find(key, now, allowingStale) { (content) throws(CacheError) in try objects.read(content) }
    }

    /// The same, as an open file at its start whose bytes have been checked.
    ///
    /// Memory: one chunk.
    package func open(
        _ key: Digest,
        now: Timestamp,
        allowingStale: Bool
    ) throws(CacheError) -> StoreHit<FileDescriptor>? {
        try find(key, now, allowingStale) { (content) throws(CacheError) in try objects.open(content) }
    }

    /// Reads the record and then, by `read`, its object; if that is gone, the record once more.
    func find<Value: ~Copyable>(
        _ key: Digest,
        _ now: Timestamp,
        _ allowingStale: Bool,
        _ read: (Content) throws(CacheError) -> Lookup<Value>
    ) throws(CacheError) -> StoreHit<Value>? {
        records.prefetch(key)
        if control.rulesOut(key) { return countedMiss(of: key) }
        var previous: [UInt8]?
        for attempt in 0..<Self.readAttempts {
            // Before the record is read: whoever changes it afterwards changes the word first.
            let generation = heldGeneration(of: key)
            if attempt == 0, let generation {
                switch records.knowledge(of: key, at: generation) {
                case .absence: return countedMiss(of: key)
                case .record(let known) where known.record.isFresh(at: now) && !isTooOld(known.record, now):
                    let entry = StoreHit<Void>(Record(known.record), stored: nil, generation)
                    if case .found(let value) = try read(entry.record.content) {
                        return hit(value, key, entry, now, known: known.accessed)
                    }
                    // Evicted with its entry, which no generation tells, or damaged: what to do the entry says.
                    records.drop(key)
                    continue
                case .record, nil: break
                }
            }
            guard let entry = try present(key, now, allowingStale, generation), let stored = entry.stored
            else {
                break
            }
            if entry.record.isNothing {
                counters.add(.negativeHit)
                break
            }
            let content = entry.record.content
            switch try read(content) {
            case .found(let value):
                return hit(value, key, entry, now)
            case .unusable:
                counters.add(.corruptObject)
                discard(key, stored, content)
                return countedMiss(of: key)
            case .missing:
                if previous == stored.bytes {
                    counters.add(.dangling)
                    forget(key, stored, unlessPresent: content)
                    return countedMiss(of: key)
                }
                previous = stored.bytes
            }
        }
        return countedMiss(of: key)
    }

    /// The generation under which values that are read from now on may be held; nil if they may not be held.
    func heldGeneration(of key: Digest) -> Generation? {
        control.generation(of: key).flatMap { $0.hasWriters ? nil : $0 }
    }

    /// Whether a value is older than the directory's limit: its entry may have been removed, while its object is there
    /// for another key.
    private func isTooOld(_ record: RecordCore, _ now: Timestamp) -> Bool {
        record.created.advanced(byNanoseconds: longestAge) < now
    }

    private func countedMiss<Value: ~Copyable>(of key: Digest) -> StoreHit<Value>? {
        counters.add(.miss)
        if control.takeEviction(of: key) { counters.add(.ghostHit) }
        return nil
    }

    /// Counts a hit, and notes its access.
    ///
    /// - Parameter known: the last use of the entry that is known from the disk, where its record was known.
    private func hit<Value: ~Copyable>(
        _ value: consuming Value,
        _ key: Digest,
        _ entry: StoreHit<Void>,
        _ now: Timestamp,
        known: Timestamp? = nil
    ) -> StoreHit<Value> {
        counters.add(entry.isStale ? .staleHit : .hit)
        counters.add(.bytesRead, entry.record.content.length)
        return StoreHit(
            value: value,
            stored: entry.stored,
            record: entry.record,
            isStale: entry.isStale,
            generation: entry.generation,
            heldUntil: noteHit(key, entry, now, known)
        )
    }

    /// Notes the access of a hit, keeps the record for the next get, and says until when the value may be given out
    /// without another look.
    private func noteHit(
        _ key: Digest,
        _ entry: StoreHit<Void>,
        _ now: Timestamp,
        _ known: Timestamp?
    ) -> Timestamp? {
        let record = entry.record
        if let idleLifetime = record.idleLifetime {
            return noteSlidingHit(key, record, idleLifetime, entry.isStale, now)
        }
        if let known {
            if !accesses.isRecent(known, now: now), let accessed = accesses.note(key, of: record, now: now) {
                records.note(key, accessed: accessed)
            }
        } else {
            let accessed = accesses.note(key, of: record, now: now) ?? .distantPast
            if let generation = entry.generation, let known = KnownRecord(record, of: key, accessed: accessed)
            {
                records.keep(known, at: generation)
            }
        }
        return record.expires
    }

    /// Notes the access of a hit of a value that accesses prolong, and says until when it may be given out
    /// without another look.
    ///
    /// Until the next access is due to be noted on disk, and at most until the value expires by the access that is noted there,
    /// which other processes go by.
    private func noteSlidingHit(
        _ key: Digest,
        _ record: Record,
        _ idleLifetime: Duration,
        _ isStale: Bool,
        _ now: Timestamp
    ) -> Timestamp? {
        // A stale hit must not prolong a sliding expiration: the value would be fresh again for all.
        guard !isStale, let accessed = accesses.note(key, of: record, now: now),
            let expiry = record.expiry(accessed: accessed, now: now)
        else { return record.expires }
        return min(expiry, now + idleLifetime / 16)
    }

    /// The entry of `key`, if its value may be given out at `now` and is there, with its length.
    ///
    /// Two system calls, one if there is no entry, none for most keys without an entry; one more for a sliding expiration whose
    /// first date has passed.
    package func liveEntry(
        _ key: Digest,
        now: Timestamp,
        allowingStale: Bool
    ) throws(CacheError) -> StoreHit<Void>? {
        if control.rulesOut(key) { return nil }
        var previous: [UInt8]?
        for _ in 0..<Self.readAttempts {
            let generation = heldGeneration(of: key)
            guard let entry = try present(key, now, allowingStale, generation), !entry.record.isNothing
            else { return nil }
            if try objects.isPresent(entry.record.content) { return entry }
            // As a get does: it may have been overwritten, and the old object swept, between the two looks.
            if previous == entry.stored?.bytes { return nil }
            previous = entry.stored?.bytes
        }
        return nil
    }

    /// The entry of `key`, with a record, if it may be given out; that there is none is kept by `generation`.
    func present(
        _ key: Digest,
        _ now: Timestamp,
        _ allowingStale: Bool,
        _ generation: Generation?
    ) throws(CacheError) -> StoreHit<Void>? {
        for _ in 0..<Self.readAttempts {
            guard let stored = try entries.read(key) else {
                if let generation { records.keep(KnownRecord(absenceOf: key), at: generation) }
                return nil
            }
            guard let record = stored.record else {
                // An empty file is an entry that is being made, or whose maker was killed.
                if !stored.bytes.isEmpty { counters.add(.corruptRecord) }
                return nil
            }
            switch try freshness(of: stored, key, now) {
            case .fresh: return StoreHit(record, stored: stored, generation)
            case .stale where allowingStale:
                return StoreHit(record, stored: stored, isStale: true, generation)
            case .stale, .expired: return nil
            case nil: continue
            }
        }
        return nil
    }

    /// nil: the entry has changed meanwhile, and must be read again.
    func freshness(
        of stored: StoredEntry,
        _ key: Digest,
        _ now: Timestamp
    ) throws(CacheError) -> Freshness? {
        guard let record = stored.record else { return .fresh }
        if record.expires == nil { return record.isOfFuture(at: now) ? .expired : .fresh }
        // What a rule has expired is over for all who go by that rule, else it could be given another expiration.
        let now = max(now, stored.judged)
        let freshness = record.freshness(at: now, accessed: .distantPast)
        // Only accesses can have prolonged it now, and those are told by the file's time.
        guard freshness != .fresh, record.idleLifetime != nil else { return freshness }
        guard let status = try directory.status(of: key, .entries) else { return .expired }
        let prolonged = record.freshness(at: now, accessed: status.accessed)
        // The time must be this record's: that of a later one would bring an expired value back to life.
        if prolonged != freshness, try entries.read(key)?.bytes != stored.bytes { return nil }
        return prolonged
    }

    /// Content by its digest, checked against it; nil if it is missing or damaged.
    ///
    /// `openat2`, `fstat` twice, `read`, `close`.
    package func data(for digest: Digest) throws(CacheError) -> Data? {
        guard let file = try objects.open(digest) else { return nil }
        let path = directory.path(of: digest, .objects)
        let status = try describing("read an object", path) { () throws(Errno) in try file.status() }
        let expected = try status.hasLargeHoles ? lengthOfContent(named: digest) : nil
        var data: Data?
        if expected == nil || expected.map(Int64.init) == status.size {
            data = try describing("read an object", path) { () throws(Errno) in
                // Memory is asked for once it is known that there is such a value.
                if status.hasLargeHoles {
                    guard try file.describeContent().digest == digest else { return nil }
                    try file.rewind()
                }
                return try file.readExactly(Int(status.size))
            }
        }
        guard let data, Digest(of: data.span) == digest else {
            counters.add(.corruptObject)
            repair { () throws(CacheError) in
                _ = try objects.deleteIfCorrupt(digest, expecting: expected, patience: .zero)
            }
            return nil
        }
        return data
    }

    /// The length of the content that was stored under its digest; nil if there is none.
    private func lengthOfContent(named digest: Digest) throws(CacheError) -> Int? {
        let content = try entries.read(Digest(ofKey: digest.description))?.record?.content
        return content?.digest == digest ? content?.length : nil
    }
}
