// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

/// What a cache holds, counted by a walk through it, and what was done with it.
public struct CacheStatistics: Sendable, Equatable, Codable {
    /// Keys: entries whose metadata can be read.
    public internal(set) var entries = 0
    /// Entries that are no key's any more, as their metadata is missing or damaged; the next collection removes them.
    ///
    /// A killed put leaves one; a copy of the directory without extended attributes consists of them.
    public internal(set) var unreadableEntries = 0
    /// Bytes on disk of the entries' files.
    public internal(set) var entryBytes: Int64 = 0
    /// Of the entries, those that have expired, also those that are still given out as stale ones.
    public internal(set) var expiredEntries = 0
    /// Distinct values.
    public internal(set) var objects = 0
    /// Bytes on disk of the values.
    public internal(set) var objectBytes: Int64 = 0
    /// Bytes on disk of directories and the cache's own files: with those of entries and values what `du` shows.
    public internal(set) var overheadBytes: Int64 = 0
    /// Length of the values that the keys name, shared ones counted each time: what it would take without
    /// sharing.
    public internal(set) var logicalBytes: Int64 = 0
    /// The access that lies back furthest: of the next value to go when space runs short.
    public internal(set) var oldestAccess: Date?
    /// What this process has done since it opened the cache.
    public internal(set) var activity = CacheActivity()
    /// What all processes have done; nil where there is no control file.
    public internal(set) var totals: Totals?
    /// What the last collection of any process did; nil: there was none, or it left no word.
    public internal(set) var lastCollection: LastCollection?
}

extension CacheStatistics {
    /// What all processes have done with a cache, dead ones included, as they have added it up in the control file.
    ///
    /// Nothing is lost where a process is killed: each counts as it goes.
    public struct Totals: Sendable, Equatable, Codable {
        /// What they did.
        public let activity: CacheActivity
        /// What the cache takes on disk.
        public let usage: Usage
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
            self.usage = Usage(usage, overhead: store.overhead)
            limits = CacheLimits(store.configuration)
            evictionAge = store.horizon
            since = store.cumulativeSince?.date
        }
    }

    /// What a cache takes on disk, as the processes that use it have added it up.
    ///
    /// An estimate, which every collection that comes to its end corrects; ``SharedCache/statistics()-3eri9`` counts.
    public struct Usage: Sendable, Equatable, Codable {
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

    /// What the last collection of any process did, as it has left word of it in the directory.
    public struct LastCollection: Sendable, Equatable, Codable {
        /// The number of the process.
        public let process: Int32
        /// When it began.
        public let began: Date
        /// When it ended; nil: it is under way, or its process was killed.
        public let ended: Date?
        /// How long it worked, its rests left out.
        public let worked: Duration
        /// Whether it looked only for expired values and what killed processes have left.
        public let expiredOnly: Bool
        /// Whether it came to its end.
        public let isComplete: Bool
        /// What was removed and why; reasons that removed nothing are left out.
        public let removed: [RemovalReason: CollectionReport.Tally]
        /// Entries that were left, with the bytes of their own files.
        public let entries: CollectionReport.Tally
        /// Distinct values that were left.
        public let objects: CollectionReport.Tally
        /// By how much more than it found the processes had added up, negative: less; nil where it did not count.
        public let drift: CollectionReport.Tally?
        /// When the last one began that looked at everything and came to its end; nil: there was none.
        public let lastFull: Date?

        init(_ record: SweepRecord) {
            let report = record.report
            process = record.process
            began = record.began.date
            ended = record.ended?.date
            worked = report.busy
            expiredOnly = record.expiredOnly
            isComplete = report.isComplete
            removed = Dictionary(
                uniqueKeysWithValues: report.removed.map { (RemovalReason($0), CollectionReport.Tally($1)) }
            )
            entries = CollectionReport.Tally(report.entries)
            objects = CollectionReport.Tally(report.objects)
            drift = report.drift.map { CollectionReport.Tally($0) }
            lastFull = record.lastFull?.began.date
        }

        /// Bytes on disk that all removals set free.
        public var removedBytes: Int64 { removed.values.reduce(0) { $0 + $1.bytes } }
    }
}
