// SPDX-License-Identifier: Apache-2.0

import CacheStore

// Calls for many keys, like those of `SharedCache`.

extension CacheView {
    /// Returns the values of these keys, without those for which a get would miss.
    ///
    /// - Throws: ``CacheError`` if the directory cannot be read.
    public func get(
        forKeys keys: some Collection<String>,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> [String: CacheHit<Value>] {
        byOwnKeys(try cache.find(keys.map { whole($0) }, codec, reading))
    }

    /// Returns the values of these keys, without those for which a get would miss, on one library thread.
    public func get(
        forKeys keys: some Collection<String>,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> [String: CacheHit<Value>] {
        byOwnKeys(try await cache.findOffThread(keys.map { whole($0) }, codec, reading))
    }

    /// Stores each value under its key, one after another, in no particular order.
    ///
    /// - Throws: ``CacheError`` for the first value that cannot be stored; later ones are not tried.
    public func put(_ values: [String: Value], options: PutOptions? = nil) throws(CacheError) {
        for (key, value) in values { try put(value, forKey: key, options: options) }
    }

    /// Stores each value under its key, one after another, on one library thread.
    public func put(_ values: [String: Value], options: PutOptions? = nil) async throws(CacheError) {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.put(values, options: options) }
    }

    /// Removes the values of these keys, one after another.
    ///
    /// - Returns: the number of values that were removed, counted as by `remove(forKey:)`.
    @discardableResult
    public func remove(forKeys keys: some Collection<String>) throws(CacheError) -> Int {
        try cache.remove(forKeys: keys.map { whole($0) })
    }

    /// Removes the values of these keys, on one library thread.
    ///
    /// - Returns: the number of values that were removed, counted as by `remove(forKey:)`.
    @discardableResult
    public func remove(forKeys keys: some Collection<String>) async throws(CacheError) -> Int {
        try await cache.remove(forKeys: keys.map { whole($0) })
    }

    /// Returns the values of these keys; missing ones are computed and stored.
    ///
    /// Each is computed once for all threads and processes that request it at the same time.
    ///
    /// Like `values(forKeys:orCompute:)` of ``SharedCache``.
    @_disfavoredOverload
    public func values(
        forKeys keys: some Collection<String>,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable ([String]) throws -> [String: Value]
    ) throws -> [String: Value] {
        byOwnKeys(
            try source.computedValues(of: wholeKeys(keys), options ?? self.options, reading) { keys in
                byWholeKeys(try compute(keys.map { withoutPrefix($0) }))
            }
        )
    }

    /// Returns the values of these keys, each computed once if it is missing; blocks no thread while it waits.
    public func values(
        forKeys keys: some Collection<String>,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable ([String]) async throws -> [String: Value]
    ) async throws -> [String: Value] {
        byOwnKeys(
            try await source.awaitedValues(of: wholeKeys(keys), options ?? self.options, reading) { keys in
                byWholeKeys(try await compute(keys.map { withoutPrefix($0) }))
            }
        )
    }

    /// Returns the values of these keys, each computed once if it is missing, by a closure that does not suspend.
    public func values(
        forKeys keys: some Collection<String>,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable ([String]) throws -> [String: Value]
    ) async throws -> [String: Value] {
        let awaited: @Sendable ([String]) async throws -> [String: Value] = { keys in try compute(keys) }
        return try await values(forKeys: keys, options: options, reading: reading, orCompute: awaited)
    }

    /// Returns the distinct keys, with the prefix of the view.
    private func wholeKeys(_ keys: some Collection<String>) -> [String] { distinct(keys).map { whole($0) } }
}
