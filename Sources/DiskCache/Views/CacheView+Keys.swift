// SPDX-License-Identifier: Apache-2.0

import CacheStore

// Calls for one key, and for all keys of a view.

extension CacheView {
    // MARK: Reading

    /// Returns the value of `key`, or nil if it is absent, expired or damaged, or does not decode.
    ///
    /// - Throws: ``CacheError`` if the directory cannot be read.
    public func get(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheHit<Value>? {
        try cache.find(whole(key), codec, reading)
    }

    /// Returns the value of `key`, or nil for a miss.
    ///
    /// A hit in memory does not switch threads; decoding happens on library threads.
    public func get(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheHit<Value>? {
        try await cache.find(whole(key), codec, reading)
    }

    /// Returns the metadata of `key`, or nil if it has no value, whether that decodes or not.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheEntry? {
        try cache.entry(forKey: whole(key), reading: reading)
    }

    /// Returns the metadata of `key`, or nil if it has no value, whether that decodes or not.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheEntry? {
        try await cache.entry(forKey: whole(key), reading: reading)
    }

    /// The value of `key`, or nil for a miss, as returned by `get(forKey:)`.
    @available(*, noasync, message: "it waits for the disk: use `get(forKey:)`")
    public subscript(key: String) -> Value? {
        get throws(CacheError) { try self.get(forKey: key)?.value }
    }

    /// Returns whether there is an unexpired value for `key`, whether it decodes or not.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func contains(forKey key: String) throws(CacheError) -> Bool {
        try cache.contains(forKey: whole(key))
    }

    // MARK: Storing

    /// Stores a value, replacing an existing one.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - key: the key in this view.
    ///   - options: expiration, metadata and placement; nil for those of the view.
    /// - Throws: ``CacheError``, with the code `encoding` if the value cannot be encoded.
    public func put(
        _ value: Value,
        forKey key: String,
        options: PutOptions? = nil
    ) throws(CacheError) {
        try source.put(value, forKey: whole(key), options ?? self.options)
    }

    /// Stores a value, replacing an existing one; encoding and system calls happen on library threads.
    public func put(
        _ value: Value,
        forKey key: String,
        options: PutOptions? = nil
    ) async throws(CacheError) {
        try await source.put(value, forKey: whole(key), options ?? self.options)
    }

    /// Stores a value unless `key` already has one, whether that decodes or not; returns whether it was stored.
    ///
    /// Like `putIfAbsent(_:forKey:options:)` of ``SharedCache``.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func putIfAbsent(
        _ value: Value,
        forKey key: String,
        options: PutOptions? = nil
    ) throws(CacheError) -> Bool {
        let (data, options) = (try source.encode(value, forKey: whole(key)), options ?? self.options)
        return try cache.putIfAbsent(data, forKey: whole(key), options: options)
    }

    /// Atomically reads and replaces the value of `key`, across processes.
    ///
    /// Like `update(forKey:options:_:)` of ``SharedCache``. A value that does not decode is a miss.
    @discardableResult
    public func update(
        forKey key: String,
        options: PutOptions? = nil,
        _ decide: (CacheHit<Value>?) throws -> Computed<Value>?
    ) throws -> Value? {
        try cache.update(whole(key), codec, options ?? self.options, decide)
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

    // MARK: Removing and expiring

    /// Removes the value of `key`, whether it decodes or not; returns false if there was none on disk.
    @discardableResult
    public func remove(forKey key: String) throws(CacheError) -> Bool {
        try cache.remove(forKey: whole(key))
    }

    /// Removes the value of `key`, whether it decodes or not; returns false if there was none on disk.
    @discardableResult
    public func remove(forKey key: String) async throws(CacheError) -> Bool {
        try await cache.remove(forKey: whole(key))
    }

    /// Records an access of `key`; returns false if there is no value.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func touch(forKey key: String) throws(CacheError) -> Bool {
        try cache.touch(forKey: whole(key))
    }

    /// Replaces the expiration of the value of `key`, and keeps everything else that was stored with it; returns false if
    /// there is no value.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func setExpiration(
        _ expires: Expiration,
        onAccess: Expiration.OnAccess = .keep,
        staleFor: Duration? = nil,
        forKey key: String
    ) throws(CacheError) -> Bool {
        try cache.setExpiration(expires, onAccess: onAccess, staleFor: staleFor, forKey: whole(key))
    }

    // MARK: All keys

    /// Removes all values of the view that were stored before this call, atomically.
    ///
    /// Like `removeAll(_:)` of ``SharedCache`` for the prefix: values whose keys the cache does not know are removed too.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func removeAll() throws(CacheError) {
        try cache.removeAll(.prefix(prefix))
    }

    /// Expires all values of the view that were stored before this call, atomically.
    ///
    /// Like `expireAll(_:staleFor:)` of ``SharedCache`` for the prefix.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func expireAll(staleFor: Duration? = nil) throws(CacheError) {
        try cache.expireAll(.prefix(prefix), staleFor: staleFor)
    }

    /// Returns the unexpired entries of the view, in no particular order.
    ///
    /// Like `entries(_:)` of ``SharedCache`` for the prefix. The entries have their full keys; ``key(of:)`` removes the
    /// prefix.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func entries() throws(CacheError) -> some Sequence<Result<CacheEntry, CacheError>> & Sendable {
        try cache.entries(.prefix(prefix))
    }

    // MARK: Locks

    /// Waits for the cache's lock that is named by the view's prefix followed by `name`.
    public func lock(
        _ name: String,
        permits: Int = 1,
        within limit: Duration? = nil
    ) throws(CacheError) -> CacheLock {
        try cache.lock(whole(name), permits: permits, within: limit)
    }

    /// Waits for the cache's lock that is named by the view's prefix followed by `name`, without blocking a thread.
    public func lock(
        _ name: String,
        permits: Int = 1,
        within limit: Duration? = nil
    ) async throws -> CacheLock {
        try await cache.lock(whole(name), permits: permits, within: limit)
    }
}
