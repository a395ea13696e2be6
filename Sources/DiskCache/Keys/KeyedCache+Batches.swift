// SPDX-License-Identifier: Apache-2.0

import Platform

// Many keys in one call. A key that is given twice counts once. Two keys with different bytes that are equal as Swift
// strings (`==` compares characters) are one key here, as in every dictionary, except in removals.

extension KeyedCache {
    /// Returns the values that gets of these keys find; keys without a value are left out.
    ///
    /// Costs as much as one get per key.
    ///
    /// - Throws: ``CacheError`` if the directory can't be read.
    public func get(
        forKeys keys: some Collection<String>,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> [String: CacheHit<Value>] {
        byOwnKeys(try cache.find(wholeKeys(keys), codec, reading))
    }

    /// Returns the values that gets of these keys find, on one library thread; keys without a value are left out.
    public func get(
        forKeys keys: some Collection<String>,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> [String: CacheHit<Value>] {
        byOwnKeys(try await cache.find(wholeKeys(keys), codec, reading))
    }

    /// Stores each value under its key, one after another, in no particular order.
    ///
    /// - Throws: ``CacheError`` for the first value that can't be stored; the values after it are not tried.
    public func put(_ values: [String: Value], options: PutOptions? = nil) throws(CacheError) {
        for (key, value) in values { try put(value, forKey: key, options: options) }
    }

    /// Stores each value under its key, one after another, on one library thread.
    ///
    /// - Throws: ``CacheError`` for the first value that can't be stored; the values after it are not tried.
    public func put(_ values: [String: Value], options: PutOptions? = nil) async throws(CacheError) {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.put(values, options: options) }
    }

    /// Removes the values of these keys, one after another.
    ///
    /// - Returns: the number of removed values.
    /// - Throws: ``CacheError`` for the first value that can't be removed; the keys after it are not tried.
    @discardableResult
    public func remove(forKeys keys: some Collection<String>) throws(CacheError) -> Int {
        var count = 0
        // Without a set: of two equal strings with different bytes, each may have a value.
        for key in keys where try remove(forKey: key) { count += 1 }
        return count
    }

    /// Removes the values of these keys, on one library thread.
    ///
    /// - Returns: the number of removed values.
    @discardableResult
    public func remove(forKeys keys: some Collection<String>) async throws(CacheError) -> Int {
        let keys = Array(keys)
        return try await offload(on: .lengthy) { () throws(CacheError) in try self.remove(forKeys: keys) }
    }

    // MARK: Computing once

    /// Returns the values of these keys; missing ones are computed and stored, each once for all threads and processes that
    /// need it at the same time.
    ///
    /// The closure gets the missing keys that no other caller is computing, at most 128 at a time; if there are more, it is
    /// called again. The call waits at the same time for all keys that other callers are computing, and computes none of
    /// its own meanwhile: calls can't deadlock, whatever the order of their keys. At most 128 files are open at once, one
    /// per key.
    ///
    /// Otherwise like `value(forKey:orCompute:)` for each key: failures of the cache itself are never thrown. All keys
    /// share one deadline, ``ReadOptions/waitLimit`` after the start of the call. Values that are due for a background
    /// refresh are computed by this closure after the call has returned. Keys that are recorded as having no value
    /// (``Computed/nothing(for:)``) are left out.
    ///
    /// - Parameters:
    ///   - keys: any non-empty strings.
    ///   - options: the computed values' expiration and other properties; nil for the view's default options.
    ///   - reading: which values are accepted, and how long to wait.
    ///   - compute: computes the values of the given keys. A key without a value in the result has none: its stored value
    ///     is removed. Values for other keys are ignored.
    /// - Returns: the values that were found or computed.
    /// - Throws: the closure's errors, unless each key that it had to compute has an old value as a fallback; values of
    ///   earlier calls of the closure are stored. With ``ReadOptions/failsAtWaitLimit``, ``CacheError/Code/timedOut`` if
    ///   other callers are still computing at the limit; this call then computes its own keys before it throws.
    @_disfavoredOverload
    public func values(
        forKeys keys: some Collection<String>,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable ([String]) throws -> [String: Value]
    ) throws -> [String: Value] {
        try byOwnKeys(
            computedValues(of: wholeKeys(keys), options, reading) { keys in
                byWholeKeys(try compute(keys.map { withoutPrefix($0) }))
            }
        )
    }

    /// Returns the values of these keys; missing ones are computed and stored, each once for all tasks, threads and
    /// processes that need it at the same time.
    ///
    /// Like the synchronous form, but blocks no thread while it waits. A task that is cancelled while it waits throws
    /// `CancellationError` at once.
    public func values(
        forKeys keys: some Collection<String>,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable ([String]) async throws -> [String: Value]
    ) async throws -> [String: Value] {
        try await byOwnKeys(
            awaitedValues(of: wholeKeys(keys), options, reading) { keys in
                byWholeKeys(try await compute(keys.map { withoutPrefix($0) }))
            }
        )
    }

    /// Returns the values of these keys; a closure that awaits nothing computes the missing ones.
    ///
    /// Otherwise like the asynchronous form with a closure that awaits.
    public func values(
        forKeys keys: some Collection<String>,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable ([String]) throws -> [String: Value]
    ) async throws -> [String: Value] {
        let awaited: @Sendable ([String]) async throws -> [String: Value] = { keys in try compute(keys) }
        return try await values(forKeys: keys, options: options, reading: reading, orCompute: awaited)
    }
}

extension KeyedCache {
    /// Returns these keys with the prefix of the view, each once.
    fileprivate func wholeKeys(_ keys: some Collection<String>) -> [String] {
        var seen: Set<String> = []
        return keys.filter { seen.insert($0).inserted }.map { whole($0) }
    }

    /// Returns the values of `keys`, each of which occurs once, on the calling thread.
    fileprivate func computedValues(
        of keys: [String],
        _ options: PutOptions?,
        _ reading: ReadOptions,
        _ compute: @escaping FlightBatch<Codec>.Compute
    ) throws -> [String: Value] {
        guard cache.core.isOwn else { return reading.source == .anywhere ? try compute(keys) : [:] }
        var batch = FlightBatch(keys, in: self, options, reading)
        if batch.asksOthers { batch.add(batch.sharedByOthers()) }
        if let refresh = batch.refresh {
            // If no thread is free, the next call tries again.
            _ = WorkerPool.refreshing.pool.runIfFree { [refresh] in
                var refresh = refresh
                // Its failures are reported as events.
                _ = try? refresh.run(compute)
            }
        }
        return try batch.run(compute)
    }

    /// Returns the values of `keys`, each of which occurs once, without blocking a thread.
    fileprivate func awaitedValues(
        of keys: [String],
        _ options: PutOptions?,
        _ reading: ReadOptions,
        _ compute: @escaping FlightBatch<Codec>.AsyncCompute
    ) async throws -> [String: Value] {
        guard cache.core.isOwn else { return reading.source == .anywhere ? try await compute(keys) : [:] }
        if keys.isEmpty { return [:] }
        var batch = await offload(on: .reading) { FlightBatch(keys, in: self, options, reading) }
        if batch.asksOthers {
            // Not on a reading thread: reads from disk would wait for the network.
            let asking = batch
            batch.add(await offloadIfFree(on: .asking) { asking.sharedByOthers() } ?? [:])
        }
        if let refresh = batch.refresh {
            Task.detached {
                var refresh = refresh
                // Its failures are reported as events.
                _ = try? await refresh.run(compute)
            }
        }
        return try await batch.run(compute)
    }
}
