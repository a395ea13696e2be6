// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

// Atomic read-modify-write across processes: each call publishes only if the entry is unchanged since it was read, and
// otherwise starts again.

extension KeyedCache {
    /// Atomically reads and replaces the value of `key`, across processes.
    ///
    /// ```swift
    /// let visits = try cache.update(forKey: "visits") { hit in
    ///     let count = hit.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
    ///     let terms = hit.map { PutOptions(keeping: $0.entry) } ?? PutOptions(expires: .days(1))
    ///     return .value(Data(String(count + 1).utf8), terms)
    /// }
    /// ```
    ///
    /// No lock is held while `decide` runs. If another process changes the value or its options meanwhile, `decide` is
    /// called again with the current value, so it must have no side effects. For an operation with side effects, take a
    /// lock: `lock(_:permits:within:)`.
    ///
    /// The result of `decide` determines what happens to the key:
    ///
    /// - `.value`: this value is stored with its own options, or with `options` if it has none.
    /// - `.unchanged`: without options, nothing is written: the value and its options stay. With options, these replace the
    ///   options of the current value, which counts as stored now. Omitted options stay as they were, except the
    ///   expiration, which becomes the configuration's default. The value's bytes are neither written nor copied.
    /// - `.unkept`: nothing is written, and the call returns this value.
    /// - `.nothing`: the value is replaced by a record that the key has no value, which is valid for the given time. With a
    ///   time of zero, or if `decide` returns nil, the value is only removed.
    ///
    /// An update counts as an access: the entry passed to `decide` already has its expiration extended.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - options: the options of a new value if `decide` returns it without options; nil for the view's default options.
    ///   - decide: takes the current value; nil for a miss, which includes an expired value and one that does not decode.
    /// - Returns: the value of the key after the call, or the value of `.unkept`; nil if there is none.
    /// - Throws: the error of `decide`, and ``CacheError``.
    @discardableResult
    public func update(
        forKey key: String,
        options: PutOptions? = nil,
        _ decide: (CacheHit<Value>?) throws -> Computed<Value>?
    ) throws -> Value? {
        let (cache, codec, key, options) = (cache, codec, whole(key), options ?? self.options)
        let digest = try cache.settledDigest(ofKey: key)
        // In the closure, nil is a conflict, and `.some(nil)` means that there is no value.
        return try repeatingConflicts { () throws -> Value?? in
            let seen = try cache.observe(digest, key, codec)
            switch try decide(seen.hit) {
            case .value(let value, let own):
                let data = try cache.encoded(value, forKey: key, codec)
                let content = Content(of: data.span)
                let terms = own == PutOptions() ? options : own
                let isStored = try cache.replace(seen.stored, with: data, content, digest, key, terms)
                return isStored ? .some(.some(value)) : nil
            case .unchanged(let terms):
                guard let hit = seen.hit, terms != PutOptions() else { return .some(seen.hit?.value) }
                return try cache.rewrite(seen.stored, hit, digest, key, terms) ? .some(.some(hit.value)) : nil
            case .unkept(let value): return .some(.some(value))
            case .nothing(let span) where span > .zero:
                return try cache.note(nothingFor: span, digest, key, ifStill: seen.stored) ? .some(nil) : nil
            case .nothing, nil: return try cache.remove(digest, key, ifStill: seen.stored) ? .some(nil) : nil
            }
        }
    }

    /// Atomically reads and replaces the value of `key`, across processes, on a library thread.
    @discardableResult
    public func update(
        forKey key: String,
        options: PutOptions? = nil,
        _ decide: @escaping @Sendable (CacheHit<Value>?) throws -> Computed<Value>?
    ) async throws -> Value? {
        try await offload(on: .lengthy) { try self.update(forKey: key, options: options, decide) }
    }
}

// MARK: Numbers

extension KeyedCache where Codec == BytesCodec {
    /// Atomically adds to the number stored under `key`, across processes.
    ///
    /// ```swift
    /// // At most 100 a minute, counted for all processes.
    /// let count = try cache.increment(forKey: "calls:\(client)", options: PutOptions(expires: .seconds(60)))
    /// guard count <= 100 else { throw TooManyRequests() }
    /// ```
    ///
    /// The number is stored as decimal digits with an optional sign, which is the value that `update` and the command-line
    /// tool see; a trailing newline is ignored. Incrementing an existing number keeps its options and its expiration; it
    /// counts as an access, which extends a sliding expiration. Like any value the number can be evicted; counting then
    /// starts again at 0, so do not use this for numbers that must not be lost.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - amount: the number to add; it may be negative or 0.
    ///   - options: the options of a new number, which starts at 0; nil for the view's default options.
    /// - Returns: the new number.
    /// - Throws: ``CacheError``, with the code `invalidArgument` if the value is not a number or the sum overflows `Int`;
    ///   the value is then unchanged.
    @discardableResult
    public func increment(
        forKey key: String,
        by amount: Int = 1,
        options: PutOptions? = nil
    ) throws(CacheError) -> Int {
        let (cache, key, options) = (cache, whole(key), options ?? self.options)
        let digest = try cache.settledDigest(ofKey: key)
        return try repeatingConflicts { () throws(CacheError) -> Int? in
            let seen = try cache.observe(digest, key, BytesCodec())
            let (sum, isBeyond) = try cache.number(in: seen.hit).addingReportingOverflow(amount)
            if isBeyond { throw cache.uncountable("the sum is beyond 64 bits: use smaller numbers") }
            let value = Data(String(sum).utf8)
            let terms = seen.hit.map { PutOptions(keeping: $0.entry) } ?? options
            let content = Content(of: value.span)
            return try cache.replace(seen.stored, with: value, content, digest, key, terms) ? sum : nil
        }
    }

    /// Atomically adds to the number stored under `key`, across processes, on a library thread.
    @discardableResult
    public func increment(
        forKey key: String,
        by amount: Int = 1,
        options: PutOptions? = nil
    ) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in
            try self.increment(forKey: key, by: amount, options: options)
        }
    }
}

// MARK: Steps

extension SharedCache {
    /// Parses the value as a number; returns 0 for a miss.
    fileprivate func number(in hit: CacheHit<Data>?) throws(CacheError) -> Int {
        guard let hit else { return 0 }
        // `echo` appends a newline to a number.
        let digits = hit.value.last == UInt8(ascii: "\n") ? hit.value.dropLast() : hit.value
        // A number has at most 20 bytes, 19 digits and a sign; longer values are not parsed.
        if digits.count <= 20, let number = Int(String(decoding: digits, as: UTF8.self)) { return number }
        throw uncountable("the value is not a whole number in decimal digits: put one, or use another key")
    }

    fileprivate func uncountable(_ words: String) -> CacheError {
        CacheError(.invalidArgument, "add to a number in \(path): \(words)", path: path)
    }

    /// Returns the entry of a key, for a write on the condition that it is unchanged, and the hit that a get would return.
    fileprivate func observe<Codec: CacheCodec>(
        _ digest: Digest,
        _ key: String,
        _ codec: Codec
    ) throws(CacheError) -> (stored: StoredEntry?, hit: CacheHit<Codec.Value>?) {
        try withStore {
            (store, now) throws(CacheError) -> (stored: StoredEntry?, hit: CacheHit<Codec.Value>?) in
            let (stored, value) = try store.observe(digest, now: now)
            guard let value, var record = stored?.record else { return (stored, nil) }
            // An update counts as an access: a caller that keeps the options also keeps the extended expiration.
            if record.idleLifetime != nil { record.expires = record.expiry(accessed: now, now: now) }
            guard let found = held(value, key, codec, record) else { return (stored, nil) }
            return (stored, CacheHit(found, from: .disk, isStale: false, at: now))
        }
    }

    /// Removes the value of `key` if `codec` can't decode it, unless the entry changes meanwhile.
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

    /// Stores `value` if the entry is still as `observed`; otherwise returns false.
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
            try store.put(value.span, for: digest, record, ifStill: observed).isWritten
        }
        if isStored { forget(key, .replaced) }
        return isStored
    }

    /// Replaces the options of the found value; returns false if the entry is no longer as `observed`, or its object is
    /// missing.
    fileprivate func rewrite(
        _ observed: StoredEntry?,
        _ hit: CacheHit<some Sendable>,
        _ digest: Digest,
        _ key: String,
        _ terms: PutOptions
    ) throws(CacheError) -> Bool {
        let (old, moment) = (hit.held.record, now)
        let record = try record(of: old.content, key: key, terms.filled(from: old), now: moment)
        let isChanged = try withStore { (store, _) throws(CacheError) in
            try store.rewrite(record, for: digest, ifStill: observed, now: moment).isWritten
        }
        if isChanged { forget(key, .replaced) }
        return isChanged
    }

    /// Records for `span` that the key has no value, if the entry is still as `observed`; otherwise returns false.
    fileprivate func note(
        nothingFor span: Duration,
        _ digest: Digest,
        _ key: String,
        ifStill observed: StoredEntry?
    ) throws(CacheError) -> Bool {
        let (record, nothing) = (try recordOfNothing(forKey: key, for: span), Data())
        let isNoted = try withStore { (store, _) throws(CacheError) in
            try store.put(nothing.span, for: digest, record, ifStill: observed).isWritten
        }
        if isNoted { forget(key, .replaced) }
        return isNoted
    }

    /// Removes the value if the entry is still as `observed`; otherwise returns false.
    fileprivate func remove(
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

/// Repeats `attempt` while it returns nil because another writer has changed the key.
///
/// The first repetition is immediate, because a conflict means that another writer made progress; later ones follow pauses.
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
