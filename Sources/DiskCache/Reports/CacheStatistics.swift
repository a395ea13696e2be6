// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

/// The contents of a cache, counted by a scan of the directory, and its use.
public struct CacheStatistics: Sendable, Equatable, Codable {
    /// Keys: entries whose metadata can be read.
    public internal(set) var entries = 0
    /// Entries whose metadata is missing or damaged, so that no key finds them.
    ///
    /// The next collection removes them.
    ///
    /// A killed put leaves one; a copy of the directory without extended attributes consists of them.
    public internal(set) var unreadableEntries = 0
    /// Bytes on disk of the entries' files.
    public internal(set) var entryBytes: Int64 = 0
    /// How many of the entries have expired, including those that are still available as stale values.
    public internal(set) var expiredEntries = 0
    /// Distinct values.
    public internal(set) var objects = 0
    /// Bytes on disk of the values.
    public internal(set) var objectBytes: Int64 = 0
    /// Bytes on disk of directories and the cache's own files.
    ///
    /// Together with those of entries and values, this is what `du` shows.
    public internal(set) var overheadBytes: Int64 = 0
    /// The total length of the values that the keys name, shared ones counted each time: what the cache would
    /// take without sharing.
    public internal(set) var logicalBytes: Int64 = 0
    /// The oldest access: that of the next value to be evicted.
    public internal(set) var oldestAccess: Date?
    /// What this process has done since it opened the cache.
    public internal(set) var activity = CacheActivity()
    /// What all processes have done; nil without a control file.
    public internal(set) var totals: Totals?
    /// What the last collection by any process did; nil if there was none, or its record is lost.
    public internal(set) var lastCollection: LastCollection?
}

extension CacheStatistics {
    /// What all processes have done with a cache, including those that have ended, as they have added it up in
    /// the control file.
    ///
    /// Nothing is lost when a process is killed: each counts as it goes.
    public struct Totals: Sendable, Equatable, Codable {
        /// Their use of the cache.
        public let activity: CacheActivity
        /// What the cache takes on disk.
        public let usage: Usage
        /// Its limits, as this process knows them: a second late at most while the janitor runs.
        public let limits: CacheLimits
        /// For how long the value that was evicted last to make room had not been used; nil if none was.
        public let evictionAge: Duration?
        /// When counting began: when the control file was made, or the counts were reset; nil if it was made by
        /// an earlier version, which doesn't say.
        public let since: Date?

        /// nil without a control file.
        init?(of store: Store) {
            guard let counts = store.cumulative, let usage = store.control.usage else { return nil }
            activity = CacheActivity { counts[$0] }
            self.usage = Usage(usage, overhead: store.parts.overhead)
            limits = store.configuration.limits
            evictionAge = store.control.horizon
            since = store.control.countedSince?.date
        }
    }

    /// What a cache takes on disk, as the processes that use it have added it up.
    ///
    /// An estimate, which every complete collection corrects; ``CacheDirectory/statistics(_:)`` counts.
    public struct Usage: Sendable, Equatable, Codable {
        /// Bytes on disk of keys and values.
        public let bytes: Int64
        /// Bytes on disk of everything else: directories, the control file and the cache's other own files.
        ///
        /// As the last collection found it; before the first one, an upper bound.
        public let overheadBytes: Int64
        /// Keys.
        public let entries: Int
        /// False if the control file was replaced while the cache was in use and no collection has counted
        /// since.
        ///
        /// Then the numbers cover only what was done since, and mean little.
        public let isCounted: Bool

        init(_ usage: StoreUsage, overhead: Int64) {
            bytes = max(0, usage.bytes)
            overheadBytes = overhead
            entries = max(0, usage.entries)
            isCounted = usage.isCounted
        }
    }

    /// What the last collection by any process did, as recorded in the directory.
    public struct LastCollection: Sendable, Equatable, Codable {
        /// The process identifier.
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
        /// The removed files by reason, without the reasons that removed none.
        public let removed: [RemovalReason: CollectionReport.Tally]
        /// Entries that were left, with the bytes of their own files.
        public let entries: CollectionReport.Tally
        /// Distinct values that were left.
        public let objects: CollectionReport.Tally
        /// By how much the processes' own counts exceeded what it found (negative: fell short); nil if it did
        /// not count.
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

        /// Bytes on disk that all removals freed.
        public var removedBytes: Int64 { removed.values.reduce(0) { $0 + $1.bytes } }
    }
}
