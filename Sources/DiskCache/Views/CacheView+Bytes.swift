// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

// Calls for bytes only: namespaces of a cache have them, typed views do not.

extension CacheView where Codec == BytesCodec {
    /// Atomically adds to the number stored under `key`, across processes; returns the sum.
    ///
    /// Like `increment(forKey:by:options:)` of ``SharedCache``.
    @discardableResult
    public func increment(
        forKey key: String,
        by amount: Int = 1,
        options: PutOptions? = nil
    ) throws(CacheError) -> Int {
        try cache.increment(forKey: whole(key), by: amount, options: options ?? self.options)
    }

    /// Atomically adds to the number stored under `key`, without blocking the task's thread; returns the sum.
    @discardableResult
    public func increment(
        forKey key: String,
        by amount: Int = 1,
        options: PutOptions? = nil
    ) async throws(CacheError) -> Int {
        try await cache.increment(forKey: whole(key), by: amount, options: options ?? self.options)
    }

    // MARK: Files

    /// Stores the contents of a file.
    ///
    /// Like `put(contentsOfFile:forKey:options:)` of ``SharedCache``.
    @discardableResult
    public func put(
        contentsOfFile path: String,
        forKey key: String,
        options: PutOptions? = nil
    ) throws(CacheError) -> CacheEntry {
        try cache.put(contentsOfFile: path, forKey: whole(key), options: options ?? self.options)
    }

    /// Stores the contents of a file, without blocking the task's thread.
    @discardableResult
    public func put(
        contentsOfFile path: String,
        forKey key: String,
        options: PutOptions? = nil
    ) async throws(CacheError) -> CacheEntry {
        try await cache.put(contentsOfFile: path, forKey: whole(key), options: options ?? self.options)
    }

    /// Copies the value of `key` to a file, atomically; returns nil for a miss, which leaves the file unchanged.
    ///
    /// Like `copyValue(forKey:toFile:reading:)` of ``SharedCache``.
    @discardableResult
    public func copyValue(
        forKey key: String,
        toFile path: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheEntry? {
        try cache.copyValue(forKey: whole(key), toFile: path, reading: reading)
    }

    /// Copies the value of `key` to a file, without blocking the task's thread; returns nil for a miss.
    @discardableResult
    public func copyValue(
        forKey key: String,
        toFile path: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheEntry? {
        try await cache.copyValue(forKey: whole(key), toFile: path, reading: reading)
    }

    /// Calls `body` with a descriptor that is open for reading at the start of the value; returns nil for a miss.
    ///
    /// Like `withDescriptor(forKey:reading:_:)` of ``SharedCache``.
    @available(*, noasync, message: "it waits for the disk: use `cache.blocking`")
    public func withDescriptor<Result>(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        _ body: (Int32, CacheEntry) throws -> Result
    ) throws -> Result? {
        try cache.withDescriptor(forKey: whole(key), reading: reading, body)
    }

    /// Returns the value of `key` as a sequence of chunks, read from its file on demand; nil for a miss.
    ///
    /// Like `chunks(forKey:reading:size:)` of ``SharedCache``.
    public func chunks(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        size: Int = 256 * 1024
    ) async throws(CacheError) -> (some AsyncSequence<Data, any Error> & Sendable)? {
        try await cache.chunks(forKey: whole(key), reading: reading, size: size)
    }
}
