// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

// What computations leave in the cache.

extension SharedCache {
    /// Stores `data` on disk, and in memory, if there is any, in the form that `hold` makes of the record; or on disk
    /// alone, if the options say so.
    func keep<Value: Sendable>(
        _ data: Data,
        forKey key: String,
        _ options: PutOptions,
        _ room: RoomTerms,
        _ hold: (Record) -> HeldValue<Value>
    ) throws(CacheError) -> HeldValue<Value> {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        let bytes = data.span
        let record = try record(of: Content(of: bytes), key: key, options, now: now)
        // As before any put: until this one is on disk, the earlier one is what gets must see.
        writeBehind.settle(digest)
        let held = hold(record)
        try publish(bytes, forKey: key, digest, record, options, room) { _ in held }
        return held
    }

    /// Keeps a value in memory alone, in place of what is on disk; it is neither encoded nor hashed.
    ///
    /// - Parameter isComputed: whether values that other processes have computed, and keep in memory alone, stay valid.
    func keepInMemory<Codec: CacheCodec>(
        _ value: Codec.Value,
        forKey key: String,
        _ codec: Codec,
        _ options: PutOptions,
        isComputed: Bool
    ) throws(CacheError) -> HeldValue<Codec.Value> {
        // A put of this process that waits is published first, to be removed like any other.
        let digest = try settledDigest(ofKey: key)
        let unknown = Content(digest: digest, length: 0, checksum: 0)
        let record = try record(of: unknown, key: key, options, now: now)
        let terms = configuration.memory.terms(of: options)
        let cost = terms.cost ?? codec.cost(of: value, encodedSize: 0)
        let held = UnstoredValue(value, key: key, in: space, codec, draft: record, cost: cost)
        try core.keepInMemory(held, digest, record, terms, isComputed: isComputed)
        return held
    }

    /// Stores that there is no value for `key`, for so long; where that is no time, removes what there is.
    func keepNothing(
        forKey key: String,
        for span: Duration,
        _ room: RoomTerms
    ) throws(CacheError) {
        guard span > .zero else {
            try remove(forKey: key)
            return
        }
        let digest = try settledDigest(ofKey: key)
        let (record, nothing) = (try recordOfNothing(forKey: key, for: span), Data())
        try withStore { (store, _) throws(CacheError) in
            _ = try store.put(nothing.span, for: digest, record, room)
        }
        forget(key, .replaced)
    }

    /// The record of an entry that says that there is no value for `key`, for so long.
    ///
    /// Its content is empty, as an entry must have one.
    func recordOfNothing(forKey key: String, for span: Duration) throws(CacheError) -> Record {
        let (terms, nothing) = (PutOptions(expires: .after(span), onAccess: .keep), Data())
        var record = try record(of: Content(of: nothing.span), key: key, terms, now: now)
        record.details.isNothing = true
        return record
    }

    /// When it was noted that there is no value for `key`, if that still counts.
    ///
    /// One system call, none for most keys that have no entry.
    func nothing(forKey key: String) throws(CacheError) -> Timestamp? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, now) throws(CacheError) in
            try store.nothing(for: digest, now: now)
        }
    }

    /// Gives the value of `key` whose record is `previous` other terms, as of now, without writing its bytes.
    ///
    /// - Parameters:
    ///   - room: what to do where the disk is full.
    ///   - hold: makes what memory keeps of the new record.
    /// - Returns: what `hold` has made, and whether that is the value now: false where somebody has stored another one,
    ///   which stays. nil where there is no value any more, and it is to be stored again.
    func renew<Value: Sendable>(
        _ previous: Record,
        forKey key: String,
        _ options: PutOptions,
        _ room: RoomTerms,
        _ hold: (Record) -> HeldValue<Value>
    ) throws(CacheError) -> (held: HeldValue<Value>, isLatest: Bool)? {
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
                switch try store.rewrite(record, for: digest, ifStill: live.stored, now: now, room) {
                case .published(let generation): return .renewed(record, generation)
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
            let (held, terms) = (hold(record), configuration.memory.terms(of: options))
            forget(key, .replaced)
            if let generation, terms.keeps != .diskOnly {
                let end = terms.end(record.heldUntil, from: record.created)
                core.hold(held, generation, until: end, of: core.store)
            }
            return (held, true)
        }
    }

    /// How giving a value other terms has ended.
    private enum Renewal {
        /// Its entry has the new record; nil: memory may not hold it.
        case renewed(Record, Generation?)
        /// Somebody has stored another one meanwhile, which stays.
        case replaced(Record)
        case gone
    }
}

extension PutOptions {
    /// These, with what they leave out as it is in `record`; but for the expiration.
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
