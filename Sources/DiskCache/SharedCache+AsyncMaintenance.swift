// SPDX-License-Identifier: Apache-2.0

// The asynchronous form of what concerns the cache as a whole.

extension SharedCache {
    /// Removes what is of no use, and what is over the limits of `options`.
    @discardableResult
    public func collectGarbage(
        _ options: GarbageCollection = GarbageCollection(),
        progress: @escaping @Sendable (CacheProgress) -> Void = { _ in }
    ) async throws(CacheError) -> GCReport {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.collectGarbage(options, progress: progress)
        }
    }

    /// Removes the least recently used values until all that are left take at most `size` on disk.
    @discardableResult
    public func trim(to size: ByteCount) async throws(CacheError) -> GCReport {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.trim(to: size) }
    }

    /// Removes expired values, and what killed processes have left.
    @discardableResult
    public func removeExpired() async throws(CacheError) -> GCReport {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.removeExpired() }
    }

    /// Removes every value that was stored before this call.
    @discardableResult
    public func removeAll() async throws(CacheError) -> Int {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.removeAll() }
    }

    /// Removes every value with this tag.
    @discardableResult
    public func removeAll(taggedWith tag: String) async throws(CacheError) -> Int {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.removeAll(taggedWith: tag) }
    }

    /// Reads and hashes every value and holds all metadata against it.
    @discardableResult
    public func verify(
        repair: Bool = false,
        progress: @escaping @Sendable (CacheProgress) -> Void = { _ in }
    ) async throws(CacheError) -> VerifyReport {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.verify(repair: repair, progress: progress)
        }
    }

    /// Reads and hashes values, all or a sample, and holds the metadata against them.
    @discardableResult
    public func verify(
        _ options: VerifyOptions,
        found: @escaping @Sendable (VerifyFinding) -> Void = { _ in },
        progress: @escaping @Sendable (CacheProgress) -> Void = { _ in }
    ) async throws(CacheError) -> VerifyReport {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.verify(options, found: found, progress: progress)
        }
    }

    /// What the cache holds, counted now, and what was done with it.
    public func statistics() async throws(CacheError) -> CacheStatistics {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.statistics() }
    }

    /// The limits of the directory, as they are now.
    public func limits() async throws(CacheError) -> CacheLimits {
        try await offload(on: .reading) { () throws(CacheError) in try self.limits() }
    }

    /// Gives the directory other limits, for all processes.
    @discardableResult
    public func updateLimits(
        _ change: @escaping @Sendable (inout CacheLimits) throws(CacheError) -> Void
    ) async throws(CacheError) -> CacheLimits {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.updateLimits(change) }
    }

    /// Gives the directory these limits and no others.
    public func setLimits(_ limits: CacheLimits) async throws(CacheError) {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.setLimits(limits) }
    }

    /// What was removed, by any process, as far as the event log of the directory goes back.
    public func removals(
        ofKey key: String? = nil,
        limit: Int = .max
    ) async throws(CacheError) -> [LoggedRemoval]? {
        try await offload(on: .lengthy) { () throws(CacheError) in try self.removals(ofKey: key, limit: limit)
        }
    }

    /// What the last collection of any process did, or has said so far.
    public func lastSweep() async throws(CacheError) -> SweepSummary? {
        try await offload(on: .reading) { () throws(CacheError) in try self.lastSweep() }
    }
}
