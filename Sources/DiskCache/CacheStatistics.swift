// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

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
    public internal(set) var totals: CacheTotals?
    /// What the last collection of any process did; nil: there was none, or it left no word.
    public internal(set) var lastSweep: SweepSummary?
}
