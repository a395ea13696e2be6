// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

// The asynchronous forms give the same guarantees and make their system calls on library threads. Asynchronous code gets
// them by overload resolution. Calls without an asynchronous form are available only through `blocking`.

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

    /// Runs `body` on a library thread, where it may wait for a disk or a lock.
    ///
    /// ```swift
    /// let report = try await cache.blocking { try $0.directory.collect() }
    /// ```
    ///
    /// - Returns: the result of `body`.
    /// - Throws: the error of `body`.
    public func blocking<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable (SharedCache) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await offload(on: .lengthy) { () throws(Failure) in try body(self) }
    }

    /// Returns the value of `key`, or nil for a miss.
    ///
    /// A hit in memory does not switch threads.
    public func get(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheHit<Data>? {
        try await find(key, BytesCodec(), reading)
    }

    /// Returns the metadata of `key`, or nil for a miss.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheEntry? {
        if reading.source == .memory { return try await get(forKey: key, reading: reading)?.entry }
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        // The only possible wait, for a queued put of this key; usually there is none.
        if writeBehind.latest({ digest }) != nil { await offload { self.writeBehind.settle(digest) } }
        return try await offload(on: .reading) { () throws(CacheError) in
            try self.publishedEntry(digest, key, reading)
        }
    }

    /// Stores `data` under `key`.
    ///
    /// With ``CacheConfiguration/Writing/behind`` this does not switch threads, unless the queue is full.
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

    /// Stores the contents of a file under `key`.
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

    /// Atomically reads and replaces the value of `key`, across processes.
    @discardableResult
    public func update(
        forKey key: String,
        options: PutOptions = PutOptions(),
        _ decide: @escaping @Sendable (CacheHit<Data>?) throws -> Computed<Data>?
    ) async throws -> Data? {
        try await offload(on: .lengthy) { try self.update(forKey: key, options: options, decide) }
    }

    /// Atomically adds to the number stored under `key`, across processes.
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

    /// Copies the value of `key` to a file; returns nil for a miss.
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

    /// Removes the value of `key`; returns false if there was none.
    @discardableResult
    public func remove(forKey key: String) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in try self.remove(forKey: key) }
    }

    /// Waits until all earlier puts are published; returns false if `limit` passed first.
    @discardableResult
    public func flush(within limit: Duration? = nil) async -> Bool {
        await offload(on: .lengthy) { self.flush(within: limit) }
    }
}
