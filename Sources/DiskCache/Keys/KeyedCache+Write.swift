// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

extension KeyedCache {
    // MARK: Storing

    /// Stores `value` under `key`, replacing an existing one.
    ///
    /// After this call returns, every get that starts later, in any process, sees the value; with
    /// ``CacheConfiguration/Writing/behind`` only gets of this process do at first. Equal bytes under several keys are
    /// stored once. Takes eleven system calls if the bytes and the key exist already, fourteen for new bytes, and one more
    /// for a new key; thirteen for new bytes under a new key after eight such puts in a row. Every half second a put takes two
    /// more, to check whether the directory's limits have changed. If there is a minimum of free space, each put of new
    /// bytes takes another one.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - key: any non-empty string.
    ///   - options: the expiration, metadata and placement of the value; nil for the view's default options.
    /// - Throws: ``CacheError``, with the code `encoding` if the value cannot be encoded; the previous value then still
    ///   exists, unless it was so large that it had to be removed to make room for the new one
    ///   (<doc:SharingBetweenProcesses#How-limits-hold>).
    @_specialize(exported:true,where Self == SharedCache)
    public func put(_ value: Value, forKey key: String, options: PutOptions? = nil) throws(CacheError) {
        try cache.put(value, forKey: whole(key), codec, options ?? self.options)
    }

    /// Stores `value` under `key`, replacing an existing one; values are encoded on library threads.
    ///
    /// With ``CacheConfiguration/Writing/behind`` a put of bytes does not switch threads, unless the queue is full.
    public func put(_ value: Value, forKey key: String, options: PutOptions? = nil) async throws(CacheError) {
        let (cache, codec, key, options) = (cache, codec, whole(key), options ?? self.options)
        if let bytes = value as? Data, Codec.self == BytesCodec.self, cache.waitsForNobody(options),
            cache.writeBehind.put(try cache.pendingWrite(bytes, forKey: key, options), waits: false)
        {
            return
        }
        try await offload { () throws(CacheError) in try cache.put(value, forKey: key, codec, options) }
    }

    /// Stores `value` unless `key` already has one, whether or not that decodes.
    ///
    /// If any number of processes call this at once, exactly one of them stores its value.
    ///
    /// - Returns: whether `value` was stored.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func putIfAbsent(
        _ value: Value,
        forKey key: String,
        options: PutOptions? = nil
    ) throws(CacheError) -> Bool {
        let (cache, key, options) = (cache, whole(key), options ?? self.options)
        let data = try cache.encoded(value, forKey: key, codec)
        let digest = try cache.settledDigest(ofKey: key)
        let content = Content(of: data.span)
        return try repeatingConflicts { () throws(CacheError) -> Bool? in
            let observed = try cache.withStore { (store, now) throws(CacheError) in
                try store.observePresence(of: digest, now: now)
            }
            if observed.isPresent { return false }
            guard try cache.replace(observed.stored, with: data, content, digest, key, options) else {
                return nil
            }
            return true
        }
    }

    // MARK: Removing

    /// Removes the value of `key`, whether or not it decodes.
    ///
    /// Six system calls. The next collection reclaims the space of the value's bytes.
    ///
    /// - Returns: whether an unexpired value was removed from disk. Stale values and values only in memory are removed, too,
    ///   but the result is false.
    @discardableResult
    public func remove(forKey key: String) throws(CacheError) -> Bool {
        let (cache, key) = (cache, whole(key))
        let digest = try cache.settledDigest(ofKey: key)
        let name = cache.configuration.keyNames == .stored ? key : nil
        let isRemoved = try cache.withStore { (store, now) throws(CacheError) in
            try store.remove(digest, now: now, name: name)
        }
        cache.forget(key, .explicit)
        return isRemoved
    }

    /// Removes the value of `key`; returns false if there was none.
    @discardableResult
    public func remove(forKey key: String) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in try self.remove(forKey: key) }
    }

    // MARK: Expiration

    /// Records an access of `key`, which also extends a sliding expiration.
    ///
    /// Seven system calls.
    ///
    /// - Returns: false if a get would miss.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func touch(forKey key: String) throws(CacheError) -> Bool {
        let (cache, key) = (cache, whole(key))
        let digest = try cache.settledDigest(ofKey: key)
        return try cache.withStore { (store, _) throws(CacheError) in try store.touch(digest) { cache.now } }
    }

    /// Replaces the expiration of the value of `key`, and keeps everything else that was stored with it.
    ///
    /// With `.expired` and a stale period the value becomes stale: a get misses, and readers that accept stale values still
    /// get it. With any other expiration this counts as an access, so `onAccess` applies at once.
    ///
    /// - Parameters:
    ///   - expires: the new expiration.
    ///   - onAccess: the effect of accesses on it, which replaces the previous one.
    ///   - staleFor: the new stale period (``PutOptions/staleFor``); nil keeps the previous one.
    ///   - key: any non-empty string.
    /// - Returns: false if a get would miss.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func setExpiration(
        _ expires: Expiration,
        onAccess: Expiration.OnAccess = .keep,
        staleFor: Duration? = nil,
        forKey key: String
    ) throws(CacheError) -> Bool {
        let (cache, key) = (cache, whole(key))
        let digest = try cache.settledDigest(ofKey: key)
        let isChanged = try repeatingConflicts { () throws(CacheError) -> Bool? in
            try cache.withStore { (store, now) throws(CacheError) -> Bool? in
                if let live = try store.liveEntry(digest, now: now, allowingStale: false) {
                    var record = live.record
                    let period = staleFor ?? record.staleFor
                    try cache.apply(expires, onAccess, staleFor: period, to: &record, now: now)
                    switch try store.rewrite(record, for: digest, ifStill: live.stored, now: now) {
                    case .written: return true
                    case .conflict: return nil
                    case .objectMissing: break
                    }
                }
                try store.invalidate(digest)
                return false
            }
        }
        if isChanged { cache.forget(key, .replaced) }
        return isChanged
    }
}
