// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

// How values are stored, by puts and after computations.

extension SharedCache {
    /// Stores a value in memory, on disk, or both, now or later, as the options say.
    @specialized(where Codec == BytesCodec)
    func put<Codec: CacheCodec>(
        _ value: Codec.Value,
        forKey key: String,
        _ codec: Codec,
        _ options: PutOptions
    ) throws(CacheError) {
        let value = try canonical(value, codec)
        if keepsInMemoryAlone(options) {
            _ = try keepInMemory(value, forKey: key, codec, options, isComputed: false)
            return
        }
        let data = try encoded(value, forKey: key, codec)
        // A value that is larger than the whole queue is written through.
        if waitsForNobody(options), writeBehind.put(try pendingWrite(data, forKey: key, options)) { return }
        let written = try write(data, forKey: key, options)
        // Created only if memory may hold it, because it costs two allocations.
        if let validity = written.validity {
            core.hold(held(value, data, key, codec, written.record, options), by: validity, of: core.store)
        }
    }

    /// Stores a computed value: in memory alone if the options say so, otherwise on disk at once, even if puts are
    /// queued.
    ///
    /// - Returns: the value in the form that memory holds.
    @specialized(where Codec == BytesCodec)
    func keep<Codec: CacheCodec>(
        _ value: Codec.Value,
        forKey key: String,
        _ codec: Codec,
        _ options: PutOptions,
        _ wait: SpaceWait
    ) throws(CacheError) -> MemoryValue<Codec.Value> {
        let value = try canonical(value, codec)
        if keepsInMemoryAlone(options) {
            return try keepInMemory(value, forKey: key, codec, options, isComputed: true)
        }
        let data = try encoded(value, forKey: key, codec)
        let written = try write(data, forKey: key, options, wait)
        let held = held(value, data, key, codec, written.record, options)
        if let validity = written.validity { core.hold(held, by: validity, of: core.store) }
        return held
    }

    /// Writes a value to disk, after the queued put of its key, if there is one.
    ///
    /// - Returns: the value's record, and the validity under which memory may hold the value; nil if memory may not hold
    ///   it.
    private func write(
        _ data: Data,
        forKey key: String,
        _ options: PutOptions,
        _ wait: SpaceWait = SpaceWait()
    ) throws(CacheError) -> (record: Record, validity: MemoryValidity?) {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        // Computed once: each access costs 200 instructions in `Data`.
        let bytes = data.span
        let record = try record(of: Content(of: bytes), key: key, options, now: now)
        // A queued put is published, not dropped: gets must see its value until this one is on disk, and also if this one
        // fails.
        writeBehind.settle(digest)
        let store = core.store
        let generation: Generation?
        do throws(CacheError) {
            generation = try store.put(bytes, for: digest, record, wait)
        } catch {
            throw core.described(error, of: store)
        }
        let terms = configuration.memory.terms(of: options)
        if terms.keeps == .diskOnly { forget(key, .replaced) }
        return (record, core.memory == nil ? nil : terms.validity(of: record, writtenAt: generation))
    }

    /// Returns a value that was encoded as `data`, in the form that memory holds.
    @inline(__always)
    private func held<Codec: CacheCodec>(
        _ value: Codec.Value,
        _ data: Data,
        _ key: String,
        _ codec: Codec,
        _ record: Record,
        _ options: PutOptions
    ) -> MemoryValue<Codec.Value> {
        MemoryValue(
            value,
            key: key,
            in: space,
            form: ObjectIdentifier(Codec.self),
            record: record,
            cost: options.memoryCost ?? configuration.memory.valueCost
                ?? codec.cost(of: value, encodedSize: data.count)
        )
    }

    /// Returns the stored form of a value.
    ///
    /// - Throws: ``CacheError`` with the code `encoding`.
    @inline(__always)
    func encoded<Codec: CacheCodec>(
        _ value: Codec.Value,
        forKey key: String,
        _ codec: Codec
    ) throws(CacheError) -> Data {
        do {
            return try codec.encode(value)
        } catch {
            throw CacheError(.encoding, "store \(key): \(error): give a value that its codec can encode")
        }
    }

    /// Returns the value as a get returns it: the indices of bytes start at 0.
    @inline(__always)
    private func canonical<Codec: CacheCodec>(
        _ value: Codec.Value,
        _ codec: Codec
    ) throws(CacheError) -> Codec.Value {
        guard Codec.self == BytesCodec.self, let bytes = value as? Data else { return value }
        return try withIndicesFromZero(bytes) as? Codec.Value ?? value
    }

    /// Returns the same bytes with indices that start at 0, as a get from disk does; a slice has the indices of its base.
    private func withIndicesFromZero(_ data: Data) throws(CacheError) -> Data {
        if data.startIndex == 0 { return data }
        return try describing("copy \(data.count) bytes for", path) { () throws(Errno) in
            try Data(copying: data.span)
        }
    }

    // MARK: Placement

    /// Whether a put with these options may return before the value is on disk; false for memory-only values.
    func waitsForNobody(_ options: PutOptions) -> Bool {
        (options.writing ?? configuration.writing) == .behind && !keepsInMemoryAlone(options)
    }

    /// Whether a value with these options is never written to disk.
    func keepsInMemoryAlone(_ options: PutOptions) -> Bool {
        (options.keeps ?? configuration.memory.keeps) == .memoryOnly
    }

    func pendingWrite(
        _ data: Data,
        forKey key: String,
        _ options: PutOptions
    ) throws(CacheError) -> PendingWrite {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        let unknown = Content(digest: digest, length: data.count, checksum: 0)
        let draft = try record(of: unknown, key: key, options, now: now)
        let terms = configuration.memory.terms(of: options)
        return PendingWrite(
            try withIndicesFromZero(data),
            forKey: key,
            in: space,
            digest,
            draft: draft,
            terms
        )
    }

    /// Keeps a value in memory alone, in place of the one on disk, without encoding or hashing it.
    ///
    /// - Parameter isComputed: whether values that other processes have computed and keep in memory alone stay valid.
    func keepInMemory<Codec: CacheCodec>(
        _ value: Codec.Value,
        forKey key: String,
        _ codec: Codec,
        _ options: PutOptions,
        isComputed: Bool
    ) throws(CacheError) -> MemoryValue<Codec.Value> {
        // A pending put of this process is published first; its entry is then removed like any other.
        let digest = try settledDigest(ofKey: key)
        let unknown = Content(digest: digest, length: 0, checksum: 0)
        let record = try record(of: unknown, key: key, options, now: now)
        let terms = configuration.memory.terms(of: options)
        let cost = terms.cost ?? codec.cost(of: value, encodedSize: 0)
        let held = UnstoredValue(value, key: key, in: space, codec, draft: record, cost: cost)
        try core.keepInMemory(held, digest, record, terms, isComputed: isComputed)
        return held
    }

    /// Records that `key` has no value for the given time; if the time is zero or less, only removes the key's value.
    func keepNothing(
        forKey key: String,
        for span: Duration,
        _ wait: SpaceWait
    ) throws(CacheError) {
        guard span > .zero else {
            try remove(forKey: key)
            return
        }
        let digest = try settledDigest(ofKey: key)
        let (record, nothing) = (try recordOfNothing(forKey: key, for: span), Data())
        try withStore { (store, _) throws(CacheError) in
            _ = try store.put(nothing.span, for: digest, record, wait)
        }
        forget(key, .replaced)
    }

    /// Returns the record of an entry that marks `key` as having no value for the given time.
    ///
    /// An entry must have content, so this one has empty content.
    func recordOfNothing(forKey key: String, for span: Duration) throws(CacheError) -> Record {
        let (terms, nothing) = (PutOptions(expires: .after(span), onAccess: .keep), Data())
        var record = try record(of: Content(of: nothing.span), key: key, terms, now: now)
        record.details.isNothing = true
        return record
    }

    /// Returns when `key` was recorded as having no value; nil if it was not, or if that record has expired.
    ///
    /// Takes one system call, or none for most keys without an entry.
    func nothing(forKey key: String) throws(CacheError) -> Timestamp? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, now) throws(CacheError) in
            try store.nothing(for: digest, now: now)
        }
    }

    /// Gives the stored value of `key` new options, as if it were stored now, without writing its bytes.
    ///
    /// - Parameters:
    ///   - wait: how to wait if the disk is full.
    ///   - hold: creates the item for memory from the new record.
    /// - Returns: the result of `hold`, and whether it is the latest value; false if another writer has stored a
    ///   different value, which then stays. nil if the value is gone, so that it must be stored again.
    func renew<Value: Sendable>(
        _ previous: Record,
        forKey key: String,
        _ options: PutOptions,
        _ wait: SpaceWait,
        _ hold: (Record) -> MemoryValue<Value>
    ) throws(CacheError) -> (held: MemoryValue<Value>, isLatest: Bool)? {
        let digest = try settledDigest(ofKey: key)
        let renewal = try repeatingConflicts { () throws(CacheError) -> Renewal? in
            try withStore { (store, now) throws(CacheError) -> Renewal? in
                let record = try record(of: previous.content, key: key, options, now: now)
                guard let live = try store.liveEntry(digest, now: now, allowingStale: true) else {
                    return .gone
                }
                let present = live.record
                guard present.content == previous.content, present.created == previous.created else {
                    return .replaced(record)
                }
                switch try store.rewrite(record, for: digest, ifStill: live.stored, now: now, wait) {
                case .written(let generation): return .renewed(record, generation)
                case .conflict: return nil
                case .objectMissing: return .gone
                }
            }
        }
        switch renewal {
        case .gone: return nil
        case .replaced(let record):
            forget(key, .replaced)
            return (hold(record), false)
        case .renewed(let record, let generation):
            let held = hold(record)
            forget(key, .replaced)
            let terms = configuration.memory.terms(of: options)
            if let validity = terms.validity(of: record, writtenAt: generation) {
                core.hold(held, by: validity, of: core.store)
            }
            return (held, true)
        }
    }

    /// The outcome of giving a value new options.
    private enum Renewal {
        /// The entry has the new record; the generation is nil if memory may not hold the value.
        case renewed(Record, Generation?)
        /// Another writer has stored a different value meanwhile, which stays.
        case replaced(Record)
        case gone
    }
}

extension PutOptions {
    /// Returns these options, with missing ones except the expiration taken from `record`.
    func filled(from record: Record) -> PutOptions {
        var options = self
        options.staleFor = staleFor ?? record.staleFor
        options.computeTime = computeTime ?? record.cost
        let details = record.details
        options.entityTag = entityTag ?? details.entityTag
        options.lastModified = lastModified ?? details.lastModified
        options.contentType = contentType ?? details.contentType
        if tags.isEmpty { options.tags = details.tags }
        if metadata.isEmpty { options.metadata = details.metadata }
        return options
    }
}
