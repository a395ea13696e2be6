// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// A value that was found.
package struct StoreHit<Value: ~Copyable>: ~Copyable {
    package let value: Value
    package let stored: StoredEntry
    package let record: Record
    package let isStale: Bool
    /// The word of the generation table before the record was read, by which the value may be held in memory;
    /// nil where it may not be held without looking at the record again.
    package let generation: Generation?
    /// Until when a value held in memory may be given out without a look at the disk; nil: for ever.
    package let heldUntil: Timestamp?
}

extension StoreHit: Copyable where Value: Copyable {}
extension StoreHit: Sendable where Value: Sendable & ~Copyable {}

/// An entry that may be given out, without its value.
package struct LiveEntry: Sendable {
    package let stored: StoredEntry
    package let record: Record
    package let isStale: Bool
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
    /// that has not changed since this process has read its record, one more (`getxattrat`) where it has; one
    /// or two more when the access time is due. None for a miss on a key that was never put since the directory
    /// was made, and for most that were removed before the filter was last made; else one. A record in
    /// sidecar form costs five more than `getxattrat` (three where the file system has no attributes).
    package func get(_ key: Digest, now: Timestamp, allowingStale: Bool) throws(StoreError) -> StoreHit<Data>?
    {
        try find(key, now, allowingStale) { (record) throws(StoreError) in
            switch try objects.read(record.content) {
            case .valid(let data): .found(data)
            case .missing: .missing
            case .corrupt: .corrupt
            }
        }
    }

    /// The same, as an open file at its start whose bytes have been checked.
    ///
    /// Memory: one chunk.
    package func open(
        _ key: Digest,
        now: Timestamp,
        allowingStale: Bool
    ) throws(StoreError) -> StoreHit<FileDescriptor>? {
        try find(key, now, allowingStale) { (record) throws(StoreError) in
            guard let file = try objects.open(record.content.digest) else { return .missing }
            guard try matches(file, record.content) else { return .corrupt }
            return .found(file)
        }
    }

    /// How a look at the object that a record names ended.
    enum Outcome<Value: ~Copyable>: ~Copyable {
        case found(Value)
        case missing
        case corrupt
    }

    /// Reads the record and then, by `read`, its object; where that is gone, the record once more.
    func find<Value: ~Copyable>(
        _ key: Digest,
        _ now: Timestamp,
        _ allowingStale: Bool,
        _ read: (Record) throws(StoreError) -> Outcome<Value>
    ) throws(StoreError) -> StoreHit<Value>? {
        var previous: [UInt8]?
        for attempt in 0..<Self.readAttempts {
            // Before the record is read: whoever changes it afterwards changes the word first.
            let generation = generations.map { $0.current(of: key) }.flatMap { $0.hasWriters ? nil : $0 }
            // Whatever it was that made one attempt fail, the next reads the record from disk.
            let known = attempt == 0 ? generation.flatMap { records.entry(of: key, at: $0) } : nil
            guard let entry = try liveEntry(key, known, now, allowingStale) else { break }
            switch try read(entry.record) {
            case .found(let value):
                if let generation, entry.stored !== known { records.keep(entry.stored, at: generation) }
                counters.add(entry.isStale ? .staleHit : .hit)
                counters.add(.bytesRead, entry.record.content.length)
                return StoreHit(
                    value: value,
                    stored: entry.stored,
                    record: entry.record,
                    isStale: entry.isStale,
                    generation: generation,
                    heldUntil: noteHit(key, entry, now: now)
                )
            case .corrupt:
                counters.add(.corruptObject)
                records.drop(key)
                discard(key, entry.stored, entry.record.content)
                counters.add(.miss)
                return nil
            case .missing:
                // Evicted, with its entry, which no generation tells.
                records.drop(key)
                if previous == entry.stored.bytes {
                    counters.add(.dangling)
                    counters.add(.miss)
                    return nil
                }
                previous = entry.stored.bytes
            }
        }
        counters.add(.miss)
        return nil
    }

    /// Notes the access of a hit, and says until when the value may be given out without another look.
    ///
    /// For a sliding expiration until the next access is due to be noted on disk, and never longer than what
    /// is noted there keeps the value alive for everybody else.
    private func noteHit(_ key: Digest, _ entry: LiveEntry, now: Timestamp) -> Timestamp? {
        let record = entry.record
        guard let idleLifetime = record.idleLifetime else {
            noteAccess(key, of: record, now: now)
            return record.expires
        }
        // A stale hit must not prolong a sliding expiration: the value would be fresh again for all.
        guard !entry.isStale, let accessed = noteAccess(key, of: record, now: now),
            let expiry = record.expiry(accessed: accessed, now: now)
        else { return record.expires }
        return min(expiry, now + idleLifetime / 16)
    }

    /// The entry of `key`, if it may be given out at `now`.
    ///
    /// One system call, none for most keys that have no entry; one more for a sliding expiration whose first
    /// date has passed.
    package func liveEntry(
        _ key: Digest,
        now: Timestamp,
        allowingStale: Bool
    ) throws(StoreError) -> LiveEntry? {
        try liveEntry(key, nil, now, allowingStale)
    }

    /// The same, without reading it where it is `known` what it is at this moment.
    private func liveEntry(
        _ key: Digest,
        _ known: StoredEntry?,
        _ now: Timestamp,
        _ allowingStale: Bool
    ) throws(StoreError) -> LiveEntry? {
        if known == nil, let filter = control.filter, !filter.mayContain(key) { return nil }
        for attempt in 0..<Self.readAttempts {
            var present = attempt == 0 ? known : nil
            if present == nil { present = try entries.read(key) }
            guard let stored = present else { return nil }
            guard let record = stored.record else {
                // An empty file is an entry that is being made, or whose maker was killed.
                if !stored.bytes.isEmpty { counters.add(.corruptRecord) }
                return nil
            }
            switch try freshness(of: stored, record, key, now) {
            case .fresh: return LiveEntry(stored: stored, record: record, isStale: false)
            case .stale where allowingStale: return LiveEntry(stored: stored, record: record, isStale: true)
            case .stale, .expired: return nil
            case nil: continue
            }
        }
        return nil
    }

    /// nil: the entry has changed meanwhile, and must be read again.
    private func freshness(
        of stored: StoredEntry,
        _ record: Record,
        _ key: Digest,
        _ now: Timestamp
    ) throws(StoreError) -> Freshness? {
        let freshness = record.freshness(at: now, accessed: .distantPast)
        // Only accesses can have prolonged it now, and those are told by the file's time.
        guard freshness != .fresh, record.idleLifetime != nil else { return freshness }
        guard let status = try entries.status(of: key) else { return .expired }
        let prolonged = record.freshness(at: now, accessed: status.accessed)
        // The time must be this record's: that of a later one would bring an expired value back to life.
        if prolonged != freshness, try entries.read(key)?.bytes != stored.bytes { return nil }
        return prolonged
    }

    /// Whether the file's bytes are those that the record promises; leaves it at its start.
    private func matches(
        _ file: borrowing FileDescriptor,
        _ content: Content
    ) throws(StoreError) -> Bool {
        try describing("read an object", objects.path(of: content.digest)) { () throws(Errno) in
            let status = try file.status()
            guard status.kind == .regular, status.size == Int64(content.length) else { return false }
            var checksum = CRC32C()
            try file.forEachChunk(orThrow: { $0 }) { (chunk) throws(Errno) in checksum.update(chunk) }
            try file.rewind()
            return checksum.value == content.checksum
        }
    }

    /// Content by its digest, checked against it; nil where it is missing or damaged.
    ///
    /// `openat2`, `fstat` twice, `read`, `close`.
    package func data(for digest: Digest) throws(StoreError) -> Data? {
        guard let file = try objects.open(digest) else { return nil }
        let data = try describing("read an object", objects.path(of: digest)) { () throws(Errno) in
            try file.readExactly(Int(try file.status().size))
        }
        guard let data, Digest(of: data.span) == digest else {
            counters.add(.corruptObject)
            repair { () throws(StoreError) in _ = try deleteIfCorrupt(digest, patience: .zero) }
            return nil
        }
        return data
    }
}

/// What an operation that depends on the present value saw.
package struct Observation: Sendable {
    /// The entry's record, also one that has expired or names nothing.
    package let stored: StoredEntry?
    /// The value, as a get would give it.
    package let value: Data?
}

extension Store {
    /// The value of `key` together with the record that a later write can be made to depend on.
    package func observe(_ key: Digest, now: Timestamp) throws(StoreError) -> Observation {
        guard let stored = try entries.read(key) else { return Observation(stored: nil, value: nil) }
        // Where the entry changes meanwhile, a write that depends on it fails, and it is observed anew.
        guard let record = stored.record, try freshness(of: stored, record, key, now) == .fresh else {
            return Observation(stored: stored, value: nil)
        }
        switch try objects.read(record.content) {
        case .valid(let data): return Observation(stored: stored, value: data)
        case .missing: break
        case .corrupt:
            // Away with it, or the write that follows would take it for the bytes that it is named by.
            counters.add(.corruptObject)
            _ = try deleteIfCorrupt(record.content.digest, patience: Stripes.writerPatience)
        }
        return Observation(stored: stored, value: nil)
    }

    /// The entry of `key`, and whether a get would find a value, which is not read.
    package func observePresence(
        of key: Digest,
        now: Timestamp
    ) throws(StoreError) -> (stored: StoredEntry?, isPresent: Bool) {
        guard let stored = try entries.read(key) else { return (nil, false) }
        guard let record = stored.record, try freshness(of: stored, record, key, now) == .fresh,
            let object = try objects.status(of: record.content.digest)
        else { return (stored, false) }
        return (stored, object.kind == .regular && object.size == Int64(record.content.length))
    }
}
