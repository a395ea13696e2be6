// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

// How computed values are stored.

extension SharedCache {
    /// Stores a computed value, encoded as `data`, on disk and, if there is a memory tier and the options allow it, in
    /// memory.
    func keep<Value: Sendable>(
        _ value: Value,
        _ form: ObjectIdentifier,
        encoded data: Data,
        forKey key: String,
        cost: Int,
        _ options: PutOptions,
        _ wait: SpaceWait
    ) throws(CacheError) -> MemoryValue<Value> {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        let bytes = data.span
        let record = try record(of: Content(of: bytes), key: key, options, now: now)
        let held = MemoryValue(value, key: key, in: space, form: form, record: record, cost: cost)
        if let validity = try write(bytes, forKey: key, digest, record, options, wait) {
            core.hold(held, by: validity, of: core.store)
        }
        return held
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
        // A pending put of this process is published first, and then removed like any other.
        let digest = try settledDigest(ofKey: key)
        let unknown = Content(digest: digest, length: 0, checksum: 0)
        let record = try record(of: unknown, key: key, options, now: now)
        let terms = configuration.memory.terms(of: options)
        let cost = terms.cost ?? codec.cost(of: value, encodedSize: 0)
        let held = UnstoredValue(value, key: key, in: space, codec, draft: record, cost: cost)
        try core.keepInMemory(held, digest, record, terms, isComputed: isComputed)
        return held
    }

    /// Records that `key` has no value for the given time; if that is zero, removes its value.
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
    /// Its content is empty, because an entry must have content.
    func recordOfNothing(forKey key: String, for span: Duration) throws(CacheError) -> Record {
        let (terms, nothing) = (PutOptions(expires: .after(span), onAccess: .keep), Data())
        var record = try record(of: Content(of: nothing.span), key: key, terms, now: now)
        record.details.isNothing = true
        return record
    }

    /// Returns when `key` was recorded as having no value; nil if it was not, or if that has expired.
    ///
    /// One system call, none for most keys that have no entry.
    func nothing(forKey key: String) throws(CacheError) -> Timestamp? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, now) throws(CacheError) in
            try store.nothing(for: digest, now: now)
        }
    }

    /// Gives the value of `key` with the record `previous` new options, as of now, without writing its bytes.
    ///
    /// - Parameters:
    ///   - wait: how to wait if the disk is full.
    ///   - hold: makes the item for memory from the new record.
    /// - Returns: the result of `hold`, and whether it is the latest value: false if another writer has stored another
    ///   value, which stays. nil if there is no value any more, so that it must be stored again.
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
        /// Another writer has stored another value meanwhile, which stays.
        case replaced(Record)
        case gone
    }
}

extension PutOptions {
    /// Returns these options, with missing ones taken from `record`, except the expiration.
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
