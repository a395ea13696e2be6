// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

// What reads, decides and writes in one step across processes: each publishes only if the entry is still the
// one that it has seen, and else begins anew.

extension SharedCache {
    /// Replaces the value of `key` by one that depends on it and its entry, atomically across processes.
    ///
    /// ```swift
    /// let visits = try cache.update(forKey: "visits") { hit in
    ///     let count = hit.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
    ///     let terms = hit.map { PutOptions(keeping: $0.entry) } ?? PutOptions(expires: .days(1))
    ///     return .value(Data(String(count + 1).utf8), terms)
    /// }
    /// ```
    ///
    /// No lock is held while `decide` runs. If another process has changed the value or its terms meanwhile,
    /// `decide` is called again with what is there now, so it must have no side effects. For an operation
    /// that has some, take a lock: `lock(_:permits:within:)`.
    ///
    /// What `decide` returns is what becomes of the key:
    ///
    /// - `.value`: this value is stored, with these terms or, if it has none of its own, with `options`.
    /// - `.unchanged` without terms: nothing is written; value and terms stay. With terms: the present value
    ///   with these, as of now. What they leave out stays as it was, but for the expiration, which is then
    ///   the configuration's default. No bytes are written or copied.
    /// - `.unkept`: nothing is written, and the call returns this.
    /// - `.nothing`: there is no value, which is remembered for so long. With no time at all, or nil: the
    ///   value is removed, and that is all.
    ///
    /// An update counts as an access: the entry that `decide` sees expires as late as that has it.
    ///
    /// - Parameters:
    ///   - key: any string but the empty one.
    ///   - options: the terms of a new value for which `decide` gives none.
    ///   - decide: takes the present value, nil for a miss; one that has expired is a miss.
    /// - Returns: the value that there is now, or what `.unkept` says; nil if there is none.
    /// - Throws: what `decide` throws, and ``CacheError``.
    @discardableResult
    public func update(
        forKey key: String,
        options: PutOptions = PutOptions(),
        _ decide: (CacheHit<Data>?) throws -> Computed<Data>?
    ) throws -> Data? {
        try update(key, BytesCodec(), options, decide)
    }

    /// The same for values as `codec` has them; one that it rejects is a miss.
    func update<Codec: CacheCodec>(
        _ key: String,
        _ codec: Codec,
        _ options: PutOptions,
        _ decide: (CacheHit<Codec.Value>?) throws -> Computed<Codec.Value>?
    ) throws -> Codec.Value? {
        let digest = try settledDigest(ofKey: key)
        let source = CodecSource(cache: self, codec: codec)
        // Inside, nil is a conflict, and `.some(nil)` that there is no value.
        return try repeatingConflicts { () throws -> Codec.Value?? in
            let seen = try observe(digest, key, codec)
            switch try decide(seen.hit) {
            case .value(let value, let own):
                let data = try source.encode(value, forKey: key)
                let content = Content(of: data.span)
                let terms = own == PutOptions() ? options : own
                let isStored = try replace(seen.stored, with: data, content, digest, key, terms)
                return isStored ? .some(.some(value)) : nil
            case .unchanged(let terms):
                guard let hit = seen.hit, terms != PutOptions() else { return .some(seen.hit?.value) }
                return try rewrite(seen.stored, hit, digest, key, terms) ? .some(.some(hit.value)) : nil
            case .unkept(let value): return .some(.some(value))
            case .nothing(let span) where span > .zero:
                return try note(nothingFor: span, digest, key, ifStill: seen.stored) ? .some(nil) : nil
            case .nothing, nil: return try remove(digest, key, ifStill: seen.stored) ? .some(nil) : nil
            }
        }
    }

    /// Adds to the number that is the value of `key`, atomically across processes.
    ///
    /// ```swift
    /// // At most 100 a minute, counted for all processes.
    /// let count = try cache.increment(forKey: "calls:\(client)", options: PutOptions(expires: .seconds(60)))
    /// guard count <= 100 else { throw TooManyRequests() }
    /// ```
    ///
    /// The value is the number in decimal digits, perhaps with a sign before them, as `update` and the
    /// command see it; a newline behind it does not matter. A number that is there keeps its terms: it expires when it was to expire, however
    /// often it is counted up. Like any value it can be evicted, and then begins anew: for what must not be
    /// lost this is not the place.
    ///
    /// - Parameters:
    ///   - key: any string but the empty one.
    ///   - amount: what to add; it may be negative, or 0.
    ///   - options: the terms of a number that begins here, at 0, because there is none.
    /// - Returns: the sum, which is stored.
    /// - Throws: ``CacheError``, with the code `invalidArgument` where the value is no number or the sum is
    ///   beyond the range of `Int`; the value is then left as it was.
    @discardableResult
    public func increment(
        forKey key: String,
        by amount: Int = 1,
        options: PutOptions = PutOptions()
    ) throws(CacheError) -> Int {
        let digest = try settledDigest(ofKey: key)
        return try repeatingConflicts { () throws(CacheError) -> Int? in
            let seen = try observe(digest, key, BytesCodec())
            let (sum, isBeyond) = try number(in: seen.hit).addingReportingOverflow(amount)
            if isBeyond { throw uncountable("the sum is beyond 64 bits: use smaller numbers") }
            let value = Data(String(sum).utf8)
            let terms = seen.hit.map { PutOptions(keeping: $0.entry) } ?? options
            let content = Content(of: value.span)
            return try replace(seen.stored, with: value, content, digest, key, terms) ? sum : nil
        }
    }

    /// The number that a value is; 0 for a miss.
    private func number(in hit: CacheHit<Data>?) throws(CacheError) -> Int {
        guard let hit else { return 0 }
        // As `echo` writes one behind a number.
        let digits = hit.value.last == UInt8(ascii: "\n") ? hit.value.dropLast() : hit.value
        // Not a byte more is read as text than a number can have: 19 digits and a sign.
        if digits.count <= 20, let number = Int(String(decoding: digits, as: UTF8.self)) { return number }
        throw uncountable("the value is no whole number in decimal digits: put one, or use another key")
    }

    private func uncountable(_ words: String) -> CacheError {
        CacheError(.invalidArgument, "add to a number in \(path): \(words)", path: path)
    }

    // MARK: Steps

    /// What there is of a key: its entry, which a write can be made to depend on, and what a get would find.
    private func observe<Codec: CacheCodec>(
        _ digest: Digest,
        _ key: String,
        _ codec: Codec
    ) throws(CacheError) -> (stored: StoredEntry?, hit: CacheHit<Codec.Value>?) {
        try withStore {
            (store, now) throws(CacheError) -> (stored: StoredEntry?, hit: CacheHit<Codec.Value>?) in
            let (stored, value) = try store.observe(digest, now: now)
            guard let value, var record = stored?.record else { return (stored, nil) }
            // This is an access, and who keeps the terms keeps what accesses have added to them.
            if record.idleLifetime != nil { record.expires = record.expiry(accessed: now, now: now) }
            guard let found = held(value, key, codec, record) else { return (stored, nil) }
            return (stored, CacheHit(found, from: .disk, isStale: false, at: now))
        }
    }

    /// Removes the value of `key` if `codec` rejects it, and it is still that one when it goes.
    func remove<Codec: CacheCodec>(_ key: String, rejectedBy codec: Codec) throws(CacheError) {
        let digest = try settledDigest(ofKey: key)
        let rejected = try withStore { (store, now) throws(CacheError) -> StoredEntry? in
            let (stored, value) = try store.observe(digest, now: now)
            guard let value else { return nil }
            do {
                _ = try codec.decode(value)
                return nil
            } catch {
                return stored
            }
        }
        if let rejected { _ = try remove(digest, key, ifStill: rejected) }
    }

    /// Stores `value` if the entry is still as `observed`; false if it is not.
    func replace(
        _ observed: StoredEntry?,
        with value: Data,
        _ content: Content,
        _ digest: Digest,
        _ key: String,
        _ options: PutOptions
    ) throws(CacheError) -> Bool {
        let record = try record(of: content, key: key, options, now: now)
        let isStored = try withStore { (store, _) throws(CacheError) in
            try store.put(value.span, for: digest, record, ifStill: observed).isPublished
        }
        if isStored { forget(key, .replaced) }
        return isStored
    }

    /// Gives the value that was found other terms; false if the entry is not as `observed` any more, or names
    /// nothing.
    private func rewrite(
        _ observed: StoredEntry?,
        _ hit: CacheHit<some Sendable>,
        _ digest: Digest,
        _ key: String,
        _ terms: PutOptions
    ) throws(CacheError) -> Bool {
        let (old, moment) = (hit.held.record, now)
        let record = try record(of: old.content, key: key, terms.filled(from: old), now: moment)
        let isChanged = try withStore { (store, _) throws(CacheError) in
            try store.rewrite(record, for: digest, ifStill: observed, now: moment).isPublished
        }
        if isChanged { forget(key, .replaced) }
        return isChanged
    }

    /// Stores that there is no value, for so long, if the entry is still as `observed`; false if it is not.
    private func note(
        nothingFor span: Duration,
        _ digest: Digest,
        _ key: String,
        ifStill observed: StoredEntry?
    ) throws(CacheError) -> Bool {
        let (record, nothing) = (try recordOfNothing(forKey: key, for: span), Data())
        let isNoted = try withStore { (store, _) throws(CacheError) in
            try store.put(nothing.span, for: digest, record, ifStill: observed).isPublished
        }
        if isNoted { forget(key, .replaced) }
        return isNoted
    }

    /// Removes the value if the entry is still as `observed`; false if it is not.
    private func remove(
        _ digest: Digest,
        _ key: String,
        ifStill observed: StoredEntry?
    ) throws(CacheError) -> Bool {
        let isRemoved = try withStore { (store, _) throws(CacheError) in
            try store.remove(digest, ifStill: observed)
        }
        if isRemoved { forget(key, .explicit) }
        return isRemoved
    }
}

/// Repeats what gives nil because another writer has changed the key meanwhile.
///
/// At once the first time, as a conflict means that somebody else got on; then after pauses.
func repeatingConflicts<Value, Failure: Error>(
    _ attempt: () throws(Failure) -> Value?
) throws(Failure) -> Value {
    if let value = try attempt() { return value }
    var backoff = Backoff()
    while true {
        if let value = try attempt() { return value }
        sleepThread(for: backoff.next())
    }
}
