// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

// The asynchronous forms: the same promises, with the system calls on threads of ours. In asynchronous code the compiler
// takes these. All calls that have none go through `blocking`, and only that way.

extension SharedCache {
    /// Opens the cache at `path`; see ``init(at:configuration:)``.
    public static func open(
        at path: String,
        configuration: CacheConfiguration = CacheConfiguration()
    ) async throws(CacheError) -> SharedCache {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try SharedCache(at: path, configuration: configuration)
        }
    }

    /// Runs `body` on a thread of the library, which may wait for a disk or a lock.
    ///
    /// ```swift
    /// let report = try await cache.blocking { try $0.directory.collect() }
    /// ```
    ///
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws.
    public func blocking<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable (SharedCache) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await offload(on: .lengthy) { () throws(Failure) in try body(self) }
    }

    /// The value of `key`, or nil for a miss.
    ///
    /// A hit in memory doesn't change threads.
    public func get(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheHit<Data>? {
        try await find(key, BytesCodec(), reading)
    }

    /// What the cache knows about `key`, or nil for a miss.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheEntry? {
        if reading.source == .memory { return try await get(forKey: key, reading: reading)?.entry }
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        // The only thing that this may have to wait for, and mostly there is none.
        if writeBehind.latest({ digest }) != nil { await offload { self.writeBehind.settle(digest) } }
        return try await offload(on: .reading) { () throws(CacheError) in
            try self.publishedEntry(digest, key, reading)
        }
    }

    /// Stores `data` under `key`.
    ///
    /// With ``CacheConfiguration/Writing/behind`` this doesn't change threads, unless the queue is full.
    public func put(_ data: Data, forKey key: String, options: PutOptions = PutOptions())
        async throws(CacheError)
    {
        if waitsForNobody(options),
            writeBehind.put(try pendingWrite(data, forKey: key, options), waits: false)
        {
            return
        }
        try await offload { () throws(CacheError) in try self.put(data, forKey: key, options: options) }
    }

    /// Stores a file's bytes under `key`.
    @discardableResult
    public func put(
        contentsOfFile path: String,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) async throws(CacheError) -> CacheEntry {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.put(contentsOfFile: path, forKey: key, options: options)
        }
    }

    /// Replaces the value of `key` by one that depends on it and its entry, atomically across processes.
    @discardableResult
    public func update(
        forKey key: String,
        options: PutOptions = PutOptions(),
        _ decide: @escaping @Sendable (CacheHit<Data>?) throws -> Computed<Data>?
    ) async throws -> Data? {
        try await offload(on: .lengthy) { try self.update(forKey: key, options: options, decide) }
    }

    /// Adds to the number that is the value of `key`, atomically across processes.
    @discardableResult
    public func increment(
        forKey key: String,
        by amount: Int = 1,
        options: PutOptions = PutOptions()
    ) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in
            try self.increment(forKey: key, by: amount, options: options)
        }
    }

    /// Copies the value of `key` to a file; nil for a miss.
    @discardableResult
    public func copyValue(
        forKey key: String,
        toFile path: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheEntry? {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.copyValue(forKey: key, toFile: path, reading: reading)
        }
    }

    /// Removes the value of `key`; false if there was none.
    @discardableResult
    public func remove(forKey key: String) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in try self.remove(forKey: key) }
    }

    /// Waits until all puts so far are published; false if `limit` passed first.
    @discardableResult
    public func flush(within limit: Duration? = nil) async -> Bool {
        await offload(on: .lengthy) { self.flush(within: limit) }
    }
}
