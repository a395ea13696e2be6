// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

// Most calls have two forms, which give the same guarantees. The synchronous form works on the calling thread. The
// asynchronous one, which asynchronous code gets by overload resolution, makes its system calls on library threads.

// `@_specialize(exported:)` compiles a form for `SharedCache` that callers in other modules call directly. Without it they
// would call the general form, which looks up metadata at run time.

extension KeyedCache {
    /// Returns the value of `key`, or nil if it is absent, expired, damaged on disk, or does not decode.
    ///
    /// Takes no lock on disk and waits for no other process. If this process has a copy in memory and the key has not been
    /// written since, a hit takes no system call. Otherwise it takes three; four if this process has not read the key before
    /// or the key has changed since; and one or four more when its access is due to be recorded. A miss takes none if the key
    /// was never put, or if this process has missed it before and it has not been written since; otherwise one. (Kernels
    /// before 6.13 need two more for a hit that takes four, and for a miss that reads the disk.)
    ///
    /// Remote servers, if configured, are asked last, within their time limit.
    ///
    /// - Parameter key: any non-empty string.
    /// - Throws: ``CacheError`` if the directory cannot be read.
    @_specialize(exported:true,where Self == SharedCache)
    public func get(forKey key: String) throws(CacheError) -> CacheHit<Value>? {
        // A separate overload: a hit in memory is so short that creating the default options would be measurable.
        try cache.find(whole(key), codec)
    }

    /// Returns the value of `key`, or nil if there is no value that `reading` accepts.
    ///
    /// Otherwise like the form without options, with the same number of system calls.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - reading: whether a stale value is acceptable, its maximum age, and where to look.
    /// - Throws: ``CacheError`` if the directory cannot be read.
    @_specialize(exported:true,where Self == SharedCache)
    public func get(forKey key: String, reading: ReadOptions) throws(CacheError) -> CacheHit<Value>? {
        try cache.find(whole(key), codec, reading)
    }

    /// Returns the value of `key`, or nil for a miss.
    ///
    /// A hit in memory does not switch threads; values are decoded on library threads.
    public func get(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheHit<Value>? {
        try await cache.find(whole(key), codec, reading)
    }

    /// The value of `key`, or nil for a miss, as returned by `get(forKey:)`.
    ///
    /// ```swift
    /// let thumb = try cache["user:1/thumb"]
    /// ```
    ///
    /// - Throws: ``CacheError`` if the directory cannot be read.
    @available(*, noasync, message: "it waits for the disk: use `get(forKey:)`")
    public subscript(key: String) -> Value? {
        get throws(CacheError) { try self.get(forKey: key)?.value }
    }

    /// Returns the metadata of the value of `key`, whether or not it decodes, without reading the value or recording an
    /// access; nil if there is none.
    ///
    /// Three system calls. If a put of this key by this process is waiting to be published, it is published first. With
    /// ``ReadOptions/Source/memory`` the call performs a get, and counts as one.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - reading: whether a stale value is acceptable, its maximum age, and where to look.
    /// - Throws: ``CacheError`` if the directory cannot be read.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheEntry? {
        if reading.source == .memory { return try get(forKey: key, reading: reading)?.entry }
        let (cache, key) = (cache, whole(key))
        return try cache.publishedEntry(cache.settledDigest(ofKey: key), key, reading)
    }

    /// Returns the metadata of `key`, or nil for a miss.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheEntry? {
        if reading.source == .memory { return try await get(forKey: key, reading: reading)?.entry }
        let (cache, key) = (cache, whole(key))
        let digest = try cache.digest(ofKey: key)
        try cache.core.checkOpen()
        // Only a queued put of this key may cause a wait; usually there is none.
        if cache.writeBehind.latest({ digest }) != nil { await offload { cache.writeBehind.settle(digest) } }
        return try await offload(on: .reading) { () throws(CacheError) in
            try cache.publishedEntry(digest, key, reading)
        }
    }

    /// Returns whether there is an unexpired value for `key`, even one that does not decode.
    ///
    /// Two system calls, one if there is no entry, and none for most keys that were never put. The value exists and has the
    /// right length, but its bytes are not read: if they are damaged, a get misses.
    ///
    /// - Throws: ``CacheError`` if the directory cannot be read.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func contains(forKey key: String) throws(CacheError) -> Bool {
        try cache.isPublished(cache.settledDigest(ofKey: whole(key)))
    }
}
