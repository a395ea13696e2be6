// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

// What is about bytes alone: namespaces of a cache have these, typed views don't.

extension CacheView where Codec == BytesCodec {
    /// Adds to the number that is the value of `key`, atomically across processes; returns the sum.
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

    /// The same, without blocking the task's thread.
    @discardableResult
    public func increment(
        forKey key: String,
        by amount: Int = 1,
        options: PutOptions? = nil
    ) async throws(CacheError) -> Int {
        try await cache.increment(forKey: whole(key), by: amount, options: options ?? self.options)
    }

    // MARK: Files

    /// Stores the content of a file.
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

    /// The same, without blocking the task's thread.
    @discardableResult
    public func put(
        contentsOfFile path: String,
        forKey key: String,
        options: PutOptions? = nil
    ) async throws(CacheError) -> CacheEntry {
        try await cache.put(contentsOfFile: path, forKey: whole(key), options: options ?? self.options)
    }

    /// Writes the value of `key` to a file, in one step; nil for a miss, which leaves the file alone.
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

    /// The same, without blocking the task's thread.
    @discardableResult
    public func copyValue(
        forKey key: String,
        toFile path: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheEntry? {
        try await cache.copyValue(forKey: whole(key), toFile: path, reading: reading)
    }

    /// Passes the value of `key` to `body` as a descriptor that is open for reading at its start; nil for a miss.
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

    /// The value of `key` in pieces, read from its file one after another; nil for a miss.
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
