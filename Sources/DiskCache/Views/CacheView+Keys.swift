// SPDX-License-Identifier: Apache-2.0

import CacheStore

// What can be done with a key, and with all of them.

extension CacheView {
    // MARK: Reading

    /// The value of `key`, or nil if there is none, it has expired, was damaged, or does not decode.
    ///
    /// - Throws: ``CacheError`` if the directory can't be read.
    public func get(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheHit<Value>? {
        try cache.find(whole(key), codec, reading)
    }

    /// The value of `key`, or nil for a miss.
    ///
    /// A hit in memory doesn't change threads; decoding happens on threads of the library.
    public func get(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheHit<Value>? {
        try await cache.find(whole(key), codec, reading)
    }

    /// What the cache knows about `key`, or nil if it has no value, whether it decodes or not.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheEntry? {
        try cache.entry(forKey: whole(key), reading: reading)
    }

    /// What the cache knows about `key`, or nil if it has no value, whether it decodes or not.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheEntry? {
        try await cache.entry(forKey: whole(key), reading: reading)
    }

    /// The value of `key`, or nil for a miss: what `get(forKey:)` finds.
    @available(*, noasync, message: "it waits for the disk: use `get(forKey:)`")
    public subscript(key: String) -> Value? {
        get throws(CacheError) { try self.get(forKey: key)?.value }
    }

    /// Whether there is a value for `key` that has not expired, whether it decodes or not.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func contains(forKey key: String) throws(CacheError) -> Bool {
        try cache.contains(forKey: whole(key))
    }

    // MARK: Storing

    /// Stores a value, replacing one that is there.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - key: its key in this view.
    ///   - options: until when it is valid, and what else to keep; nil: those of the view.
    /// - Throws: ``CacheError``, with the code `encoding` if the value can't be encoded.
    public func put(
        _ value: Value,
        forKey key: String,
        options: PutOptions? = nil
    ) throws(CacheError) {
        try source.put(value, forKey: whole(key), options ?? self.options)
    }

    /// Stores a value, replacing one that is there; encoding and system calls happen on threads of the library.
    public func put(
        _ value: Value,
        forKey key: String,
        options: PutOptions? = nil
    ) async throws(CacheError) {
        try await source.put(value, forKey: whole(key), options ?? self.options)
    }

    /// Stores a value unless there is one for `key` already, whether that decodes or not; says whether it was stored.
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

    /// Replaces the value of `key` by one that depends on it and its entry, atomically across processes.
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

    /// Replaces the value of `key` by one that depends on it, on a thread of the library.
    @discardableResult
    public func update(
        forKey key: String,
        options: PutOptions? = nil,
        _ decide: @escaping @Sendable (CacheHit<Value>?) throws -> Computed<Value>?
    ) async throws -> Value? {
        try await offload(on: .lengthy) { try self.update(forKey: key, options: options, decide) }
    }

    // MARK: Removing and expiring

    /// Removes the value of `key`, whatever its type; false if there was none on disk.
    @discardableResult
    public func remove(forKey key: String) throws(CacheError) -> Bool {
        try cache.remove(forKey: whole(key))
    }

    /// Removes the value of `key`, whatever its type; false if there was none on disk.
    @discardableResult
    public func remove(forKey key: String) async throws(CacheError) -> Bool {
        try await cache.remove(forKey: whole(key))
    }

    /// Counts as an access of `key`; false if there is no value.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func touch(forKey key: String) throws(CacheError) -> Bool {
        try cache.touch(forKey: whole(key))
    }

    /// Gives the value of `key` another expiration, and keeps everything else that was stored with it; false if there is
    /// none.
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

    /// Removes every value of the view that was stored before this call, in one step.
    ///
    /// Like `removeAll(_:)` of ``SharedCache`` for the prefix: values whose keys the cache does not know go too.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func removeAll() throws(CacheError) {
        try cache.removeAll(.prefix(prefix))
    }

    /// Has every value of the view expire that was stored before this call, in one step.
    ///
    /// Like `expireAll(_:staleFor:)` of ``SharedCache`` for the prefix.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func expireAll(staleFor: Duration? = nil) throws(CacheError) {
        try cache.expireAll(.prefix(prefix), staleFor: staleFor)
    }

    /// The entries of the view that have not expired, in no particular order.
    ///
    /// Like `entries(_:)` of ``SharedCache`` for the prefix. They have their whole keys; ``key(of:)`` takes the prefix off.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func entries() throws(CacheError) -> some Sequence<Result<CacheEntry, CacheError>> & Sendable {
        try cache.entries(.prefix(prefix))
    }

    // MARK: Locks

    /// Waits for the cache's lock whose name is the prefix of the view and `name`.
    public func lock(
        _ name: String,
        permits: Int = 1,
        within limit: Duration? = nil
    ) throws(CacheError) -> CacheLock {
        try cache.lock(whole(name), permits: permits, within: limit)
    }

    /// Waits for the cache's lock whose name is the prefix of the view and `name`, without blocking a thread.
    public func lock(
        _ name: String,
        permits: Int = 1,
        within limit: Duration? = nil
    ) async throws -> CacheLock {
        try await cache.lock(whole(name), permits: permits, within: limit)
    }
}
