// SPDX-License-Identifier: Apache-2.0

import Platform

// Many keys in one call. A key that is given twice counts once. Two keys that are equal Swift strings although their bytes
// differ (`==` compares characters) are one key here, as in every dictionary, except in removals.

extension KeyedCache {
    /// Returns the values of these keys that a get finds.
    ///
    /// Costs as much as the same number of gets.
    ///
    /// - Throws: ``CacheError`` if the directory can't be read.
    public func get(
        forKeys keys: some Collection<String>,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> [String: CacheHit<Value>] {
        let view = view
        return view.byOwnKeys(try view.cache.find(view.wholeKeys(keys), view.codec, reading))
    }

    /// Returns the values of these keys that a get finds, on one library thread.
    public func get(
        forKeys keys: some Collection<String>,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> [String: CacheHit<Value>] {
        let view = view
        return view.byOwnKeys(try await view.cache.find(view.wholeKeys(keys), view.codec, reading))
    }

    /// Stores each value under its key, one after another, in no particular order.
    ///
    /// - Throws: ``CacheError`` for the first one that can't be stored; those after it are not tried.
    public func put(_ values: [String: Value], options: PutOptions? = nil) throws(CacheError) {
        for (key, value) in values { try put(value, forKey: key, options: options) }
    }

    /// Stores each value under its key, one after another, on one library thread.
    ///
    /// - Throws: ``CacheError`` for the first one that can't be stored; those after it are not tried.
    public func put(_ values: [String: Value], options: PutOptions? = nil) async throws(CacheError) {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.put(values, options: options) }
    }

    /// Removes the values of these keys, one after another.
    ///
    /// - Returns: the number of removed values.
    /// - Throws: ``CacheError`` for the first one that can't be removed; those after it are not tried.
    @discardableResult
    public func remove(forKeys keys: some Collection<String>) throws(CacheError) -> Int {
        var count = 0
        // All keys: of two that are equal although their bytes differ, each may have a value.
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
    /// The closure gets the keys that no other caller is computing, 128 at most in one call; if there are more, it is called
    /// again. The call waits at the same time for all keys that others are computing, so calls can't deadlock, whatever the
    /// order of their keys. At most one file is open for each of these 128 keys.
    ///
    /// Otherwise like `value(forKey:orCompute:)` for each key: failures of the cache itself are never thrown. One deadline,
    /// ``ReadOptions/waitLimit`` after the start of the call, applies to all keys. Values that are due for a background
    /// refresh are computed by this closure after the call has returned. Keys that are recorded as having no value
    /// (``Computed/nothing(for:)``) are left out.
    ///
    /// - Parameters:
    ///   - keys: any non-empty strings.
    ///   - options: the computed values' expiration and other properties; nil for those of the view.
    ///   - reading: which values are accepted, and how long to wait.
    ///   - compute: computes values; a key that it leaves out has none, and its stored value is removed. Values of keys that
    ///     it was not given are dropped.
    /// - Returns: the values that were found or computed.
    /// - Throws: the closure's errors, unless each key that it had to compute has an old value as a fallback; values that
    ///   were computed before are stored. With ``ReadOptions/failsAtWaitLimit``, ``CacheError/Code/timedOut`` if other
    ///   callers are not done at the limit; this call has then computed its own keys.
    @_disfavoredOverload
    public func values(
        forKeys keys: some Collection<String>,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable ([String]) throws -> [String: Value]
    ) throws -> [String: Value] {
        let view = view
        return try view.byOwnKeys(
            view.computedValues(of: view.wholeKeys(keys), options, reading) { keys in
                view.byWholeKeys(try compute(keys.map { view.withoutPrefix($0) }))
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
        let view = view
        return try await view.byOwnKeys(
            view.awaitedValues(of: view.wholeKeys(keys), options, reading) { keys in
                view.byWholeKeys(try await compute(keys.map { view.withoutPrefix($0) }))
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

extension CacheView {
    /// Returns the full forms of these keys, each once.
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
            // Not on a reading thread: reads of this disk would wait for the network.
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
