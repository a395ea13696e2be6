// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// A value that was found.
package struct StoreHit<Value: ~Copyable>: ~Copyable {
    package let value: Value
    /// The entry as it was read; nil where it was known without, by the generation.
    package let stored: StoredEntry?
    package let source: RecordSource
    package let isStale: Bool
    /// The word of the generation table before the record was read, by which the value may be held in memory;
    /// nil where it may not be held without looking at the record again.
    package let generation: Generation?
    /// Until when a value held in memory may be given out without a look at the disk; nil: for ever.
    package let heldUntil: Timestamp?

    /// Without the text of the key where the entry was not read.
    package var record: Record { source.record }
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
    /// was made, for most that were removed before the filter was last made, and for one that has not changed
    /// since this process last found it missing; else one. A record in
    /// sidecar form costs six more than `getxattrat` (four where the file system has no attributes).
    package func get(_ key: Digest, now: Timestamp, allowingStale: Bool) throws(StoreError) -> StoreHit<Data>?
    {
        try find(key, now, allowingStale) { (content) throws(StoreError) in
            switch try objects.read(content, isChecked: checksContent) {
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
        try find(key, now, allowingStale) { (content) throws(StoreError) in
            guard let file = try objects.open(content.digest) else { return .missing }
            guard try matches(file, content) else { return .corrupt }
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
        _ read: (Content) throws(StoreError) -> Outcome<Value>
    ) throws(StoreError) -> StoreHit<Value>? {
        records.prefetch(key)
        if isAbsent(key) { return countedMiss(of: key) }
        var previous: [UInt8]?
        for attempt in 0..<Self.readAttempts {
            // Before the record is read: whoever changes it afterwards changes the word first.
            let generation = heldGeneration(of: key)
            if attempt == 0, let generation {
                switch records.knowledge(of: key, at: generation) {
                case .absence: return countedMiss(of: key)
                case .record(let known) where known.isFresh(at: now):
                    if case .found(let value) = try read(known.content) {
                        return hit(value, key, known, generation, now)
                    }
                    // Evicted with its entry, which no generation tells, or damaged: what to do the entry says.
                    records.drop(key)
                    continue
                case .record, nil: break
                }
            }
            guard let (stored, isStale) = try present(key, now, allowingStale, generation),
                let content = stored.record?.content
            else { break }
            switch try read(content) {
            case .found(let value):
                return hit(value, key, stored, isStale, generation, now)
            case .corrupt:
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

    /// Whether the control file says that there is no entry of `key`.
    ///
    /// No system call.
    private func isAbsent(_ key: Digest) -> Bool {
        guard let filter = control.filter else { return false }
        return !filter.mayContain(key)
    }

    /// The generation under which what is read from now on may be held; nil where nothing may.
    private func heldGeneration(of key: Digest) -> Generation? {
        guard let generation = generations?.current(of: key), !generation.hasWriters else { return nil }
        return generation
    }

    private func countedMiss<Value: ~Copyable>(of key: Digest) -> StoreHit<Value>? {
        counters.add(.miss)
        if control.takeEviction(of: key) { counters.add(.ghostHit) }
        return nil
    }

    /// Counts a hit by a record that was known, and notes its access.
    private func hit<Value: ~Copyable>(
        _ value: consuming Value,
        _ key: Digest,
        _ known: KnownRecord,
        _ generation: Generation,
        _ now: Timestamp
    ) -> StoreHit<Value>? {
        counters.add(.hit)
        counters.add(.bytesRead, known.length)
        if !isRecent(known.accessed, now: now), let accessed = noteAccess(key, of: known.record, now: now) {
            records.note(key, accessed: accessed)
        }
        return StoreHit(
            value: value,
            stored: nil,
            source: .known(known),
            isStale: false,
            generation: generation,
            heldUntil: known.expiry
        )
    }

    /// Counts a hit, notes its access and keeps the record for the next get.
    private func hit<Value: ~Copyable>(
        _ value: consuming Value,
        _ key: Digest,
        _ stored: StoredEntry,
        _ isStale: Bool,
        _ generation: Generation?,
        _ now: Timestamp
    ) -> StoreHit<Value>? {
        guard let record = stored.record else { return nil }
        counters.add(isStale ? .staleHit : .hit)
        counters.add(.bytesRead, record.content.length)
        let heldUntil: Timestamp?
        if let idleLifetime = record.idleLifetime {
            heldUntil = noteSlidingHit(key, record, idleLifetime, isStale, now)
        } else {
            let accessed = noteAccess(key, of: record, now: now) ?? .distantPast
            heldUntil = record.expires
            if let generation, let known = KnownRecord(record, of: key, accessed: accessed) {
                records.keep(known, at: generation)
            }
        }
        return StoreHit(
            value: value,
            stored: stored,
            source: .record(record),
            isStale: isStale,
            generation: generation,
            heldUntil: heldUntil
        )
    }

    /// Notes the access of a hit of a value that accesses prolong, and says until when it may be given out
    /// without another look.
    ///
    /// Until the next access is due to be noted on disk, and never longer than what is noted there keeps the
    /// value alive for everybody else.
    private func noteSlidingHit(
        _ key: Digest,
        _ record: Record,
        _ idleLifetime: Duration,
        _ isStale: Bool,
        _ now: Timestamp
    ) -> Timestamp? {
        // A stale hit must not prolong a sliding expiration: the value would be fresh again for all.
        guard !isStale, let accessed = noteAccess(key, of: record, now: now),
            let expiry = record.expiry(accessed: accessed, now: now)
        else { return record.expires }
        return min(expiry, now + idleLifetime / 16)
    }

    /// The entry of `key`, if its value may be given out at `now` and is there, with its length.
    ///
    /// Two system calls, one where there is no entry, none for most keys that have none; one more for a sliding
    /// expiration whose first date has passed.
    package func liveEntry(
        _ key: Digest,
        now: Timestamp,
        allowingStale: Bool
    ) throws(StoreError) -> LiveEntry? {
        if isAbsent(key) { return nil }
        var previous: [UInt8]?
        for _ in 0..<Self.readAttempts {
            guard let (stored, isStale) = try present(key, now, allowingStale, heldGeneration(of: key)),
                let record = stored.record
            else { return nil }
            if try objects.isPresent(record.content) {
                return LiveEntry(stored: stored, record: record, isStale: isStale)
            }
            // As a get does: it may have been overwritten, and the old object swept, between the two looks.
            if previous == stored.bytes { return nil }
            previous = stored.bytes
        }
        return nil
    }

    /// The entry of `key`, with a record, if it may be given out; that there is none is kept by `generation`.
    private func present(
        _ key: Digest,
        _ now: Timestamp,
        _ allowingStale: Bool,
        _ generation: Generation?
    ) throws(StoreError) -> (StoredEntry, isStale: Bool)? {
        for _ in 0..<Self.readAttempts {
            guard let stored = try entries.read(key) else {
                if let generation { records.keepAbsence(of: key, at: generation) }
                return nil
            }
            guard stored.record != nil else {
                // An empty file is an entry that is being made, or whose maker was killed.
                if !stored.bytes.isEmpty { counters.add(.corruptRecord) }
                return nil
            }
            switch try freshness(of: stored, key, now) {
            case .fresh: return (stored, false)
            case .stale where allowingStale: return (stored, true)
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
    ) throws(StoreError) -> Freshness? {
        // The record, hundreds of bytes with a dozen references, is copied only where it has to be.
        if stored.record?.expires == nil { return .fresh }
        guard let record = stored.record else { return .expired }
        let freshness = record.freshness(at: now, accessed: .distantPast)
        // Only accesses can have prolonged it now, and those are told by the file's time.
        guard freshness != .fresh, record.idleLifetime != nil else { return freshness }
        guard let status = try entries.status(of: key) else { return .expired }
        let prolonged = record.freshness(at: now, accessed: status.accessed)
        // The time must be this record's: that of a later one would bring an expired value back to life.
        if prolonged != freshness, try entries.read(key)?.bytes != stored.bytes { return nil }
        return prolonged
    }

    /// Whether the file's bytes are those that the record promises, as far as they are to be checked; leaves it
    /// at its start.
    private func matches(
        _ file: borrowing FileDescriptor,
        _ content: Content
    ) throws(StoreError) -> Bool {
        try describing("read an object", objects.path(of: content.digest)) { () throws(Errno) in
            let status = try file.status()
            guard status.kind == .regular, status.size == Int64(content.length) else { return false }
            if !checksContent { return true }
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
        let path = objects.path(of: digest)
        let status = try describing("read an object", path) { () throws(Errno) in try file.status() }
        var expected: Int?
        if status.hasLargeHoles { expected = try lengthOfContent(named: digest) }
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
            repair { () throws(StoreError) in
                _ = try parts.deleteIfCorrupt(digest, expecting: expected, patience: .zero)
            }
            return nil
        }
        return data
    }

    /// The length of the content that was stored under its digest; nil where none was.
    private func lengthOfContent(named digest: Digest) throws(StoreError) -> Int? {
        let content = try entries.read(Digest(ofKey: digest.description))?.record?.content
        return content?.digest == digest ? content?.length : nil
    }
}
