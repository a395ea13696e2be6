// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

/// What all processes have done with a cache, dead ones included, as they have added it up in the control file.
///
/// Nothing is lost where a process is killed: each counts as it goes.
public struct CacheTotals: Sendable, Equatable, Codable {
    /// What they did.
    public let activity: CacheActivity
    /// What the cache takes on disk.
    public let usage: CacheUsage
    /// What it may take, as this process knows it: a second late at most while the janitor runs.
    public let limits: CacheLimits
    /// For how long what was evicted last for want of room had not been used; nil where nothing was.
    public let evictionAge: Duration?
    /// Since when they count: the control file was made, or the counts were reset; nil where it does not say,
    /// as one made by an earlier version.
    public let since: Date?

    /// nil where there is no control file.
    init?(of store: Store) {
        guard let counts = store.cumulative, let usage = store.usage else { return nil }
        activity = CacheActivity { counts[$0] }
        self.usage = CacheUsage(usage, overhead: store.overhead)
        limits = CacheLimits(store.configuration)
        evictionAge = store.horizon
        since = store.cumulativeSince?.date
    }
}

/// What a cache takes on disk, as the processes that use it have added it up.
///
/// An estimate, which every collection that comes to its end corrects; ``SharedCache/statistics()-3eri9`` counts.
public struct CacheUsage: Sendable, Equatable, Codable {
    /// Bytes on disk of keys and values.
    public let bytes: Int64
    /// Bytes on disk of what is there beside them: directories, the control file and other files of the cache's
    /// own.
    ///
    /// As the last collection found it; before the first an upper bound.
    public let overheadBytes: Int64
    /// Keys.
    public let entries: Int
    /// False where the control file was made anew in a cache that was in use and no collection has counted
    /// since: then the numbers tell only of what was done since, and mean little.
    public let isCounted: Bool

    init(_ usage: StoreUsage, overhead: Int64) {
        bytes = max(0, usage.bytes)
        overheadBytes = overhead
        entries = max(0, usage.entries)
        isCounted = usage.isCounted
    }
}

extension SharedCache {
    /// What this process did with the cache.
    ///
    /// No system call.
    public var activity: CacheActivity {
        core.activity
    }

    /// What all processes did with the cache, and what it takes on disk; nil where there is no control file.
    ///
    /// No system call.
    ///
    /// - Throws: ``CacheError``, only with the code `closed`.
    public func totals() throws(CacheError) -> CacheTotals? {
        try withStore { (store, _) throws(StoreError) in CacheTotals(of: store) }
    }

    /// Sets what all processes did to 0; what each knows of itself stays.
    ///
    /// What another process counts at this very moment may be lost. No system call.
    ///
    /// - Returns: false where there is no control file that this process can write.
    /// - Throws: ``CacheError``, only with the code `closed`.
    @discardableResult
    public func resetTotals() throws(CacheError) -> Bool {
        try withStore { (store, now) throws(StoreError) in store.resetCumulative(now: now) }
    }
}
