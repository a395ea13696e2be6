// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// What a cache holds, counted by a walk through it, and what this process did with it.
public struct CacheStatistics: Sendable, Equatable, Codable {
    /// Keys.
    public internal(set) var entries = 0
    /// Bytes on disk of the entries' files.
    public internal(set) var entryBytes: Int64 = 0
    /// Of the entries, those that have expired, also those that are still given out as stale ones.
    public internal(set) var expiredEntries = 0
    /// Distinct values.
    public internal(set) var objects = 0
    /// Bytes on disk of the values.
    public internal(set) var objectBytes: Int64 = 0
    /// Length of the values that the keys name, shared ones counted each time: what it would take without
    /// sharing.
    public internal(set) var logicalBytes: Int64 = 0
    /// The access that lies back furthest: of the next value to go when space runs short.
    public internal(set) var oldestAccess: Date?
    /// What this process has done since it opened the cache.
    public internal(set) var activity = CacheActivity()
}

/// What a process has done with a cache since it opened it.
public struct CacheActivity: Sendable, Equatable, Codable {
    /// Gets that found a value, in memory or on disk.
    public internal(set) var hits = 0
    /// Gets that found an expired value and had asked for it.
    public internal(set) var staleHits = 0
    /// Gets that found nothing they could give out.
    public internal(set) var misses = 0
    /// Values stored.
    public internal(set) var puts = 0
    /// Values removed by request.
    public internal(set) var removals = 0
    /// Misses because of damage: metadata or bytes that were not as they must be.
    public internal(set) var corruptions = 0
    /// Misses because the bytes of a value were gone.
    public internal(set) var danglingEntries = 0
    /// Accesses that could not be noted, for want of permission or space.
    public internal(set) var unnotedAccesses = 0
}
