// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// An entry whose value may be returned.
package struct LiveEntry: Sendable {
    /// The record, without the text of the key if the entry was not read.
    package let record: Record
    /// The entry as it was read; nil if a remembered record was used, which the generation shows to be current.
    package let stored: StoredEntry?
    package var isStale = false
    /// The generation before the record was read, under which the value may be held in memory.
    ///
    /// Nil if the value may not be held without reading the record again.
    package let generation: Generation?
}

/// A value that was found.
package struct StoreHit<Value: ~Copyable>: ~Copyable {
    package let value: Value
    package let entry: LiveEntry
    /// When a value held in memory must be checked on disk again; nil for never.
    package let heldUntil: Timestamp?

    package var record: Record { entry.record }
}

extension StoreHit: Copyable where Value: Copyable {}
extension StoreHit: Sendable where Value: Sendable & ~Copyable {}

extension Store {
    /// How many times a read retries because the record changed.
    ///
    /// Each retry means that another process has published a new value and a sweep has deleted the old one in the
    /// microseconds between two calls.
    private static let readAttempts = 16

    /// Returns the value of `key`, or nil if it is missing, expired, dangling or damaged.
    ///
    /// Takes no lock on disk and never waits. A hit takes three system calls (`openat2`, `read`, `close`) if the key has
    /// not changed since this process has read its record, one more (`getxattrat`) if it has, and one or four more if the
    /// access time is due. A miss takes none for most keys that were never put since the directory was created or that were
    /// removed before the filter was last rebuilt, and none for a key that has not changed since this process last found it
    /// missing; otherwise one. A record in sidecar form takes six more than `getxattrat` (four if the file system has no
    /// attributes).
    package func get(_ key: Digest, now: Timestamp, allowingStale: Bool) throws(CacheError) -> StoreHit<Data>?
    {
        guard packs != nil else {
            return try find(key, now, allowingStale) { (content) throws(CacheError) in
                try objects.read(content)
            }
        }
        for _ in 0..<Self.readAttempts {
            // A key that gets or loses its record in a pack meanwhile has another generation afterwards.
            let generation = control.generation(of: key)
            if let packed = try packedValue(key, now: now) { return packedHit(packed, key, allowingStale) }
            let hit = try find(key, now, allowingStale) { (content) throws(CacheError) in
                try objects.read(content)
            }
            if try isPacked(key) { continue }
            if hit != nil || generation == control.generation(of: key) { return hit }
        }
        return nil
    }

    /// Counts a read of a value in a pack; returns nil if it may not be returned.
    private func packedHit(_ packed: PackedValue, _ key: Digest, _ allowingStale: Bool) -> StoreHit<Data>? {
        let isStale = packed.freshness == .stale
        guard let record = packed.record, packed.freshness == .fresh || isStale && allowingStale else {
            return countedMiss(of: key)
        }
        counters.add(isStale ? .staleHit : .hit)
        counters.add(.bytesRead, packed.value.count)
        let entry = LiveEntry(record: record, stored: nil, isStale: isStale, generation: nil)
        return StoreHit(value: packed.value, entry: entry, heldUntil: nil)
    }

    /// Returns the value as an open file, at its start, whose bytes have been checked.
    ///
    /// Memory: one chunk.
    package func open(
        _ key: Digest,
        now: Timestamp,
        allowingStale: Bool
    ) throws(CacheError) -> StoreHit<FileDescriptor>? {
        for _ in 0..<Self.readAttempts {
            try unpack(key)
            let generation = packs == nil ? nil : control.generation(of: key)
            let hit = try find(key, now, allowingStale) { (content) throws(CacheError) in
                try objects.open(content)
            }
            if let hit { return hit }
            if try isSettled(key, since: generation) { break }
        }
        return nil
    }

    /// Reads the record and then, with `read`, its object; if the object is missing, reads the record again.
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
            // Load the generation before the record: any process that changes the record afterwards changes the generation
            // first.
            let generation = heldGeneration(of: key)
            if attempt == 0, let generation {
                switch records.knowledge(of: key, at: generation) {
                case .absence: return countedMiss(of: key)
                case .record(let known) where known.record.isFresh(at: now) && !isTooOld(known.record, now):
                    let entry = LiveEntry(record: Record(known.record), stored: nil, generation: generation)
                    if case .found(let value) = try read(entry.record.content) {
                        return hit(value, key, entry, now, known: known.accessed)
                    }
                    // The object was evicted with its entry, which does not change the generation, or is damaged. The entry
                    // shows what to do.
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

    /// Returns the generation under which values that are read from now on may be held; nil if they may not be held.
    func heldGeneration(of key: Digest) -> Generation? {
        control.generation(of: key).flatMap { $0.hasWriters ? nil : $0 }
    }

    /// Returns whether a value is older than the directory's limit.
    ///
    /// Its entry may have been removed while its object remains for another key.
    private func isTooOld(_ record: RecordCore, _ now: Timestamp) -> Bool {
        record.created.advanced(byNanoseconds: longestAge) < now
    }

    private func countedMiss<Value: ~Copyable>(of key: Digest) -> StoreHit<Value>? {
        counters.add(.miss)
        if control.takeEviction(of: key) { counters.add(.ghostHit) }
        return nil
    }

    /// Counts a hit, and records its access.
    ///
    /// - Parameter known: the last use recorded on disk, if a remembered record was used.
    private func hit<Value: ~Copyable>(
        _ value: consuming Value,
        _ key: Digest,
        _ entry: LiveEntry,
        _ now: Timestamp,
        known: Timestamp? = nil
    ) -> StoreHit<Value> {
        counters.add(entry.isStale ? .staleHit : .hit)
        counters.add(.bytesRead, entry.record.content.length)
        return StoreHit(value: value, entry: entry, heldUntil: noteHit(key, entry, now, known))
    }

    /// Records the access of a hit, remembers the record for the next get, and returns when the value must be checked again.
    private func noteHit(
        _ key: Digest,
        _ entry: LiveEntry,
        _ now: Timestamp,
        _ known: Timestamp?
    ) -> Timestamp? {
        let record = entry.record
        // As for all stale values with a sliding expiration: an access could make them fresh again. The record that rules
        // have changed is not remembered either, because a clock that is set back must not make it fresh.
        if entry.stored?.isChangedByRules ?? false { return record.expires }
        if let idleLifetime = record.idleLifetime {
            return noteSlidingHit(key, record, idleLifetime, entry.isStale, now)
        }
        if let known {
            if !accesses.isRecent(known, now: now), let accessed = accesses.note(key, of: record, now: now) {
                records.note(key, accessed: accessed)
            }
        } else {
            let accessed = accesses.note(key, of: record, now: now) ?? .distantPast
            if let generation = entry.generation,
                let known = CachedRecord(record, of: key, accessed: accessed)
            {
                records.keep(known, at: generation)
            }
        }
        return record.expires
    }

    /// Records the access of a hit of a value that accesses prolong, and returns when the value must be checked again.
    ///
    /// That is when the next access is due to be recorded on disk, but no later than the expiration that follows from the
    /// access time on disk, which other processes use.
    private func noteSlidingHit(
        _ key: Digest,
        _ record: Record,
        _ idleLifetime: Duration,
        _ isStale: Bool,
        _ now: Timestamp
    ) -> Timestamp? {
        // A stale hit must not prolong a sliding expiration: the value would be fresh again for all processes.
        guard !isStale, let accessed = accesses.note(key, of: record, now: now),
            let expiry = record.expiry(accessed: accessed, now: now)
        else { return record.expires }
        return min(expiry, now + idleLifetime / 16)
    }

    /// Returns the entry of `key`, if its value may be returned at `now` and its object exists with the right length.
    ///
    /// Two system calls; one if there is no entry, none for most keys without an entry; one more for a sliding expiration
    /// whose first date has passed.
    package func liveEntry(
        _ key: Digest,
        now: Timestamp,
        allowingStale: Bool
    ) throws(CacheError) -> LiveEntry? {
        for _ in 0..<Self.readAttempts {
            try unpack(key)
            let generation = packs == nil ? nil : control.generation(of: key)
            if let entry = try liveEntryInFiles(key, now, allowingStale) { return entry }
            if try isSettled(key, since: generation) { break }
        }
        return nil
    }

    private func liveEntryInFiles(
        _ key: Digest,
        _ now: Timestamp,
        _ allowingStale: Bool
    ) throws(CacheError) -> LiveEntry? {
        if control.rulesOut(key) { return nil }
        var previous: [UInt8]?
        for _ in 0..<Self.readAttempts {
            let generation = heldGeneration(of: key)
            guard let entry = try present(key, now, allowingStale, generation), !entry.record.isNothing
            else { return nil }
            if try objects.isPresent(entry.record.content) { return entry }
            // As in a get: the entry may have been overwritten, and the old object swept, between the two reads.
            if previous == entry.stored?.bytes { return nil }
            previous = entry.stored?.bytes
        }
        return nil
    }

    /// Returns the entry of `key`, with a record, if its value may be returned.
    ///
    /// If there is no entry, remembers that under `generation`.
    func present(
        _ key: Digest,
        _ now: Timestamp,
        _ allowingStale: Bool,
        _ generation: Generation?
    ) throws(CacheError) -> LiveEntry? {
        for _ in 0..<Self.readAttempts {
            guard let stored = try entries.read(key) else {
                if let generation { records.keep(CachedRecord(absenceOf: key), at: generation) }
                return nil
            }
            guard let record = stored.record else {
                // An empty file is an entry that is being created, or one whose creator was killed.
                if !stored.bytes.isEmpty { counters.add(.corruptRecord) }
                return nil
            }
            switch try freshness(of: stored, key, now) {
            case .fresh: return LiveEntry(record: record, stored: stored, generation: generation)
            case .stale where allowingStale:
                return LiveEntry(record: record, stored: stored, isStale: true, generation: generation)
            case .stale, .expired: return nil
            case nil: continue
            }
        }
        return nil
    }

    /// Returns the freshness of an entry, or nil if the entry has changed meanwhile and must be read again.
    func freshness(
        of stored: StoredEntry,
        _ key: Digest,
        _ now: Timestamp
    ) throws(CacheError) -> Freshness? {
        guard let record = stored.record else { return .fresh }
        if record.expires == nil { return record.isOfFuture(at: now) ? .expired : .fresh }
        // An entry that a rule has expired is expired in all processes that apply the rule, whatever their clocks say;
        // otherwise it could get another expiration.
        let now = max(now, stored.judged)
        let freshness = record.freshness(at: now, accessed: .distantPast)
        // Only accesses can have prolonged the value's life, and the file's access time shows them.
        guard freshness != .fresh, record.idleLifetime != nil else { return freshness }
        guard let status = try directory.status(of: key, .entries) else { return .expired }
        let prolonged = record.freshness(at: now, accessed: status.accessed)
        // The access time must belong to this record: the time of a later record would make an expired value fresh again.
        if prolonged != freshness, try entries.read(key)?.bytes != stored.bytes { return nil }
        return prolonged
    }

    /// Returns content by its digest, checked against the digest; nil if it is missing or damaged.
    ///
    /// Five system calls: `openat2`, `fstat` twice, `read`, `close`.
    package func data(for digest: Digest) throws(CacheError) -> Data? {
        guard let file = try objects.open(digest) else { return nil }
        let path = directory.path(of: digest, .objects)
        let status = try describing("read an object", path) { () throws(Errno) in try file.status() }
        let expected = try status.hasLargeHoles ? lengthOfContent(named: digest) : nil
        var data: Data?
        if expected == nil || expected.map(Int64.init) == status.size {
            data = try describing("read an object", path) { () throws(Errno) in
                // Allocate memory only once the content is known to exist.
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

    /// Returns the length of the content that was stored under its own digest; nil if there is none.
    private func lengthOfContent(named digest: Digest) throws(CacheError) -> Int? {
        let content = try entries.read(Digest(ofKey: digest.description))?.record?.content
        return content?.digest == digest ? content?.length : nil
    }
}
