// SPDX-License-Identifier: Apache-2.0

import CacheStore

// Many keys in one call, as for bytes.

extension CacheView {
    /// The values of these keys, as far as a get finds them.
    ///
    /// - Throws: ``CacheError`` if the directory can't be read.
    public func get(
        forKeys keys: some Collection<String>,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> [String: CacheHit<Value>] {
        byOwnKeys(try cache.find(keys.map { whole($0) }, codec, reading))
    }

    /// The values of these keys, as far as a get finds them; on one thread of the library.
    public func get(
        forKeys keys: some Collection<String>,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> [String: CacheHit<Value>] {
        byOwnKeys(try await cache.findOffThread(keys.map { whole($0) }, codec, reading))
    }

    /// Stores each value under its key, one after another, in no particular order.
    ///
    /// - Throws: ``CacheError`` for the first one that can't be stored; those after it are not tried.
    public func put(_ values: [String: Value], options: PutOptions? = nil) throws(CacheError) {
        for (key, value) in values { try put(value, forKey: key, options: options) }
    }

    /// Stores each value under its key, one after another, on one thread of the library.
    public func put(_ values: [String: Value], options: PutOptions? = nil) async throws(CacheError) {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.put(values, options: options) }
    }

    /// Removes the values of these keys, one after another.
    ///
    /// - Returns: how many there were.
    @discardableResult
    public func remove(forKeys keys: some Collection<String>) throws(CacheError) -> Int {
        try cache.remove(forKeys: keys.map { whole($0) })
    }

    /// Removes the values of these keys, on one thread of the library.
    ///
    /// - Returns: how many there were.
    @discardableResult
    public func remove(forKeys keys: some Collection<String>) async throws(CacheError) -> Int {
        try await cache.remove(forKeys: keys.map { whole($0) })
    }

    /// The values of these keys; those that are not there are computed and stored, each once for all threads and
    /// processes that want it at the same time.
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

    /// The values of these keys, each computed once if it is not there; blocks no thread while it waits.
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

    /// The values of these keys, each computed once if it is not there, by a closure that awaits nothing.
    public func values(
        forKeys keys: some Collection<String>,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable ([String]) throws -> [String: Value]
    ) async throws -> [String: Value] {
        let awaited: @Sendable ([String]) async throws -> [String: Value] = { keys in try compute(keys) }
        return try await values(forKeys: keys, options: options, reading: reading, orCompute: awaited)
    }

    /// Each of these keys once, as the cache has it.
    private func wholeKeys(_ keys: some Collection<String>) -> [String] { distinct(keys).map { whole($0) } }
}
