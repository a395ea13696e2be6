// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

/// The contents of a cache, counted by a scan of the directory, and its use.
public struct CacheStatistics: Sendable, Equatable, Codable {
    /// The number of keys: entries whose metadata can be read.
    public internal(set) var entries = 0
    /// Entries whose metadata is missing or damaged, so that every get misses them.
    ///
    /// The next collection removes them. A killed put leaves one; in a copy of the directory without extended attributes
    /// all entries are unreadable.
    public internal(set) var unreadableEntries = 0
    /// Bytes on disk of the entries' files.
    public internal(set) var entryBytes: Int64 = 0
    /// The number of entries that have expired, including those that are still available as stale values.
    public internal(set) var expiredEntries = 0
    /// The number of distinct values.
    public internal(set) var objects = 0
    /// Bytes on disk of the values.
    public internal(set) var objectBytes: Int64 = 0
    /// Bytes on disk of directories and the cache's own files.
    ///
    /// Together with ``entryBytes`` and ``objectBytes`` this is what `du` shows.
    public internal(set) var overheadBytes: Int64 = 0
    /// The total length of the values of all keys, counting shared values once per key: the size without sharing.
    public internal(set) var logicalBytes: Int64 = 0
    /// The least recent last access of any value: that of the next value to be evicted.
    public internal(set) var oldestAccess: Date?
    /// The use of the cache by this process since it opened the cache.
    public internal(set) var activity = CacheActivity()
    /// The use of the cache by all processes; nil without a control file.
    public internal(set) var totals: Totals?
    /// The last collection by any process; nil if there was none, or its record is lost.
    public internal(set) var lastCollection: LastCollection?
}

extension CacheStatistics {
    /// The use of a cache by all processes, including those that have ended, as added up in the control file.
    ///
    /// No counts are lost when a process is killed: each process counts every event immediately.
    public struct Totals: Sendable, Equatable, Codable {
        /// The use of the cache.
        public let activity: CacheActivity
        /// The disk usage of the cache.
        public let usage: Usage
        /// The limits of the directory, as this process knows them: at most a second old while the janitor runs.
        public let limits: CacheLimits
        /// How long the most recently used of the values that were last evicted to make space had been unused; nil if none
        /// was evicted.
        public let evictionAge: Duration?
        /// When counting began: when the control file was created, or the counts were reset; nil if the control file was
        /// created by an earlier version, which does not record this.
        public let since: Date?

        /// Reads the counts; nil without a control file.
        init?(of store: Store) {
            guard let counts = store.cumulative, let usage = store.control.usage else { return nil }
            activity = CacheActivity { counts[$0] }
            self.usage = Usage(usage, overhead: store.overhead)
            limits = store.configuration.limits
            evictionAge = store.control.horizon
            since = store.control.countedSince?.date
        }
    }

    /// The disk usage of a cache, as added up by the processes that use it.
    ///
    /// This is an estimate that every complete collection corrects; ``CacheDirectory/statistics(_:)`` counts exactly.
    public struct Usage: Sendable, Equatable, Codable {
        /// Bytes on disk of keys and values.
        public let bytes: Int64
        /// Bytes on disk of everything else: directories, the control file and the cache's other own files.
        ///
        /// As of the last collection; before the first one, an upper bound.
        public let overheadBytes: Int64
        /// The number of keys.
        public let entries: Int
        /// Whether the numbers cover the whole directory.
        ///
        /// False if the control file was replaced while the cache was in use and no collection has counted since. Then the
        /// numbers cover only the changes since the replacement, and mean little.
        public let isCounted: Bool

        init(_ usage: StoreUsage, overhead: Int64) {
            bytes = max(0, usage.bytes)
            overheadBytes = overhead
            entries = max(0, usage.entries)
            isCounted = usage.isCounted
        }
    }

    /// The last collection by any process, as recorded in the directory.
    public struct LastCollection: Sendable, Equatable, Codable {
        /// The identifier of the collecting process.
        public let process: Int32
        /// When it began.
        public let began: Date
        /// When it ended; nil if it is running, or its process was killed.
        public let ended: Date?
        /// How long it worked, not counting pauses.
        public let worked: Duration
        /// Whether it looked only for expired values and leftovers of killed processes.
        public let expiredOnly: Bool
        /// Whether it was completed.
        public let isComplete: Bool
        /// The removed files by reason; reasons without removals are omitted.
        public let removed: [RemovalReason: CollectionReport.Tally]
        /// The remaining entries, with the bytes of their own files.
        public let entries: CollectionReport.Tally
        /// The remaining distinct values.
        public let objects: CollectionReport.Tally
        /// The difference between the processes' own counts and the collection's count, positive if the processes counted
        /// too much; nil if the collection did not count.
        public let drift: CollectionReport.Tally?
        /// When the last complete collection of everything began; nil if there was none.
        public let lastFull: Date?

        init(_ record: SweepRecord) {
            let report = record.report
            process = record.process
            began = record.began.date
            ended = record.ended?.date
            worked = report.worked
            expiredOnly = record.expiredOnly
            isComplete = report.isComplete
            removed = report.removed
            entries = report.entries
            objects = report.objects
            drift = report.drift
            lastFull = record.lastFull?.began.date
        }

        /// The bytes on disk that all removals freed.
        public var removedBytes: Int64 { removed.values.reduce(0) { $0 + $1.bytes } }
    }
}
