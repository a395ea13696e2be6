// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension CacheDirectory {
    /// Returns the directory's current limits.
    ///
    /// Two system calls, and three more if `config.json` has changed.
    ///
    /// - Throws: ``CacheError`` with the code `badConfiguration` if `config.json` cannot be parsed.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func limits() throws(CacheError) -> CacheLimits {
        try withStore { (store, _) throws(CacheError) in
            store.followConfiguration()
            cache.core.followLimits()
            if let failure = store.configurationFailure { throw failure }
            return store.configuration.limits
        }
    }

    /// Changes the directory's limits, for all processes.
    ///
    /// Other processes adopt them within a second. Entries beyond the new limits are evicted by a process that has a
    /// janitor, or by the next collection.
    ///
    /// - Parameter change: changes the current limits in place. Other callers that change limits wait meanwhile, at most
    ///   0.7 seconds, and then fail with the code `busy`; so it should return quickly, and must not call `updateLimits`
    ///   itself. It is called again if the disk was full.
    /// - Returns: the new limits.
    /// - Throws: ``CacheError``, with the code `invalidArgument` for a size that even an empty cache would exceed, and the
    ///   error of `change`. The limits then stay unchanged.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func updateLimits(
        _ change: (inout CacheLimits) throws(CacheError) -> Void
    ) throws(CacheError) -> CacheLimits {
        var limits = CacheLimits()
        var refusal: CacheError?
        try withStore { (store, _) throws(CacheError) in
            try store.configure { (configuration) throws(CacheError) in
                let before = configuration.limits
                limits = before
                do throws(CacheError) {
                    try change(&limits)
                    try limits.check(against: before)
                    try limits.checkRoom(beside: store.overhead - store.eventLogSpace, path, against: before)
                } catch {
                    // Not thrown here: `configure` takes a disk-full error for one of its own, and evicts values, even if
                    // `change` failed because another disk is full.
                    refusal = error
                    return
                }
                configuration.limits = limits.replacing(before)
            }
        }
        if let refusal { throw refusal }
        cache.core.followLimits()
        return limits
    }
}

extension SharedCache {
    /// Writes the limits of this cache's configuration if the directory has none, and reports it if the directory has
    /// others.
    func establishLimits() throws(CacheError) {
        guard let limits = configuration.limits, core.store.configurationFailure == nil else { return }
        if core.store.directory.isWritable, core.store.configuration.limits.limitNothing {
            // Another process may have set limits first.
            try directory.updateLimits { present in
                if present.limitNothing { present = limits }
            }
        }
        let present = core.store.configuration
        if !present.includes(DirectoryConfiguration(limits.replacing(CacheLimits()))) {
            core.events.sendEarly(.limitsDiffer(given: limits, present: present.limits))
        }
    }
}

extension CacheLimits {
    /// Whether no limits are set; the kind of file system and the sharing of memory are not limits.
    fileprivate var limitNothing: Bool {
        var others = self
        others.assumesLocal = nil
        others.sharesMemory = nil
        return others == CacheLimits()
    }

    /// Returns the directory's limits after a change from `before`: nil leaves ``assumesLocal`` and ``sharesMemory`` as they
    /// were.
    fileprivate func replacing(_ before: CacheLimits) -> CacheLimits {
        var limits = self
        limits.assumesLocal = (assumesLocal ?? before.assumesLocal) == true ? true : nil
        limits.sharesMemory = (sharesMemory ?? before.sharesMemory) == false ? false : nil
        return limits
    }

    /// Rejects limits that no directory can satisfy, unless they were set before: changing one limit should not fail because
    /// of another.
    fileprivate func check(against before: CacheLimits) throws(CacheError) {
        if maximumEntries != before.maximumEntries, maximumEntries ?? 1 < 1 {
            throw CacheError(.invalidArgument, "limit the keys: there must be room for one: use 1 or more")
        }
        for (name, span) in [("age", maximumAge), ("idle time", maximumIdleTime)] where span ?? .zero < .zero
        {
            throw CacheError(.invalidArgument, "limit the \(name): it can't be negative: use 0 or more")
        }
        if eventLogSize != before.eventLogSize, let log = eventLogSize?.bytes,
            (1..<EventLog.smallestLimit).contains(log)
        {
            throw CacheError(
                .invalidArgument,
                "limit the log: it takes 64 KiB at least: use that or more, or 0"
            )
        }
        // Otherwise the change would write a `config.json` that no process can read.
        if let problem = DirectoryConfiguration(self).problem {
            throw CacheError(.invalidArgument, "change the limits: \(problem): use another value")
        }
    }

    /// Rejects a size that the directories and the cache's own files alone exceed.
    fileprivate func checkRoom(
        beside overhead: Int64,
        _ path: String,
        against before: CacheLimits
    ) throws(CacheError) {
        let overhead = overhead + (eventLogSize?.bytes ?? 0)
        // The smallest value takes a block.
        let least = overhead + 4096
        guard let maximumSize, maximumSize.bytes < least else { return }
        if maximumSize == before.maximumSize, eventLogSize == before.eventLogSize { return }
        throw CacheError(
            .invalidArgument,
            """
            limit \(path) to \(maximumSize.bytes) bytes: its directories, log and own files take up to \(overhead): \
            use \(least) or more
            """,
            path: path
        )
    }
}
