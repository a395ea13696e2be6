// SPDX-License-Identifier: Apache-2.0

public import CacheStore

/// Counts of the use of a cache, either by this process since it opened the cache (``CacheDirectory/activity``) or by all
/// processes together (``CacheStatistics/Totals/activity``).
public struct CacheActivity: Sendable, Equatable, Codable {
    // MARK: Reading and writing

    /// Gets that found a value in the memory of their process.
    public internal(set) var memoryHits = 0
    /// Gets that found a value on disk.
    public internal(set) var diskHits = 0
    /// Gets that accepted stale values and found an expired one on disk.
    public internal(set) var staleHits = 0
    /// Gets that found no value to return.
    public internal(set) var misses = 0
    /// Values stored.
    public internal(set) var puts = 0
    /// Values removed by request.
    public internal(set) var removals = 0
    /// Calls that removed or expired many values in one step.
    ///
    /// The removed values count when collections delete them, as ``RemovalReason/cleared``.
    public internal(set) var removalRules = 0
    /// Bytes of the values that were read from disk.
    public internal(set) var bytesRead = 0
    /// Bytes of the values that were written to disk.
    public internal(set) var bytesWritten = 0

    // MARK: Limits

    /// Puts that had to wait for space, because the directory was at one of its limits.
    public internal(set) var roomWaits = 0
    /// Puts that failed because no space could be made.
    public internal(set) var roomFailures = 0
    /// How many of the values evicted for a limit of size, keys or free space had been used in the ten minutes before.
    public internal(set) var youngEvictions = 0
    /// Misses of keys that had been evicted shortly before: an estimate, 64 times the misses of a sample of keys.
    public internal(set) var ghostMisses = 0

    // MARK: Computing

    /// Computations started, in the background or not.
    public internal(set) var computations = 0
    /// Waits for another caller's computation, in the same process or another one.
    public internal(set) var waits = 0
    /// How many of the computations ran in the background, for a value that had expired or soon would.
    public internal(set) var refreshes = 0
    /// How many of the computations failed.
    public internal(set) var computeFailures = 0
    /// Values computed without the cache, because it could not be read, locked or written.
    public internal(set) var cacheFailures = 0
    /// How many of the misses were of keys that are recorded as having no value.
    public internal(set) var negativeHits = 0

    // MARK: Other machines

    /// Local misses for which a remote store had a value.
    public internal(set) var remoteHits = 0
    /// Local misses for which no remote store had a value.
    public internal(set) var remoteMisses = 0
    /// Requests to remote servers that failed.
    public internal(set) var remoteErrors = 0
    /// Requests to remote servers that were not answered in time.
    public internal(set) var remoteTimeouts = 0
    /// Remote values that did not match their digests; they also count as misses.
    public internal(set) var remoteCorruptions = 0
    /// Local misses for which no server was asked: the servers had failed, a change was not sent yet, or no time was left.
    public internal(set) var remoteSkips = 0
    /// Keys whose values were sent to remote servers, or removed there.
    public internal(set) var remoteWrites = 0
    /// Keys that were not sent because too many were waiting, or because the server refused them.
    public internal(set) var remoteDrops = 0
    /// Bytes of values that were received from remote servers.
    public internal(set) var remoteBytesReceived = 0
    /// Bytes of values that were sent to remote servers.
    public internal(set) var remoteBytesSent = 0

    // MARK: Faults

    /// Misses because metadata or bytes were damaged.
    public internal(set) var corruptions = 0
    /// Misses because the bytes of a value were missing.
    public internal(set) var danglingEntries = 0
    /// Accesses that could not be recorded, for lack of permission or space.
    public internal(set) var unnotedAccesses = 0
    /// Damage that a reader could not remove at once.
    ///
    /// The next collection removes it.
    public internal(set) var unrepairedDamage = 0
    /// Values accepted by write-behind that could not be stored.
    public internal(set) var publishFailures = 0
    /// How often the control file could not be created or mapped, or the file of rules could not be updated.
    public internal(set) var controlFailures = 0

    // MARK: Removal

    /// Collections that were completed.
    public internal(set) var collections = 0
    /// Removals by collections, by reason; reasons without removals are omitted.
    public internal(set) var collected: [RemovalReason: Int] = [:]
    /// Values that left the memory of their process, by cause; causes that did not occur are omitted.
    public internal(set) var leftMemory: [MemoryRemovalCause: Int] = [:]

    /// Creates counts of 0.
    init() {}

    init(_ count: (StoreCounters.Event) -> Int) {
        for (field, events) in Self.fields { self[keyPath: field] = events.reduce(0) { $0 + count($1) } }
        collected = Self.counts { count(StoreCounters.Event($0)) }
        leftMemory = Self.counts { count(StoreCounters.Event($0)) }
        ghostMisses *= EvictedKeys.sample
    }

    /// Returns the counts of all cases, without those that are 0.
    private static func counts<Key: CaseIterable & Hashable>(_ count: (Key) -> Int) -> [Key: Int] {
        Dictionary(uniqueKeysWithValues: Key.allCases.map { ($0, count($0)) }).filter { $0.value != 0 }
    }

    /// Values evicted for a limit of size, keys or free space.
    public var evictions: Int {
        collected[.size, default: 0] + collected[.entries, default: 0] + collected[.freeSpace, default: 0]
    }

    /// Every count that is a single number, with the events that it is the sum of.
    private static var fields: [(WritableKeyPath<CacheActivity, Int>, [StoreCounters.Event])] {
        [
            (\.memoryHits, [.memoryHit]), (\.diskHits, [.hit]), (\.staleHits, [.staleHit]),
            (\.misses, [.miss]), (\.puts, [.put]), (\.removals, [.removal]),
            (\.removalRules, [.removalRule]),
            (\.bytesRead, [.bytesRead]), (\.bytesWritten, [.bytesWritten]),
            (\.roomWaits, [.roomWait]), (\.roomFailures, [.roomFailure]),
            (\.youngEvictions, [.evictedYoung]), (\.ghostMisses, [.ghostHit]),
            (\.computations, [.computation]), (\.waits, [.wait]), (\.refreshes, [.refresh]),
            (\.computeFailures, [.computeFailure]), (\.cacheFailures, [.cacheFailure]),
            (\.negativeHits, [.negativeHit]),
            (\.corruptions, [.corruptRecord, .corruptObject]), (\.danglingEntries, [.dangling]),
            (\.unnotedAccesses, [.accessFailure]), (\.unrepairedDamage, [.repairFailure]),
            (\.publishFailures, [.publishFailure]), (\.controlFailures, [.controlFailure]),
            (\.collections, [.sweep]),
            (\.remoteHits, [.remoteHit]), (\.remoteMisses, [.remoteMiss]), (\.remoteErrors, [.remoteError]),
            (\.remoteTimeouts, [.remoteSlow]), (\.remoteCorruptions, [.remoteWrong]),
            (\.remoteSkips, [.remoteSkipped]), (\.remoteWrites, [.remoteWritten]),
            (\.remoteDrops, [.remoteDropped]), (\.remoteBytesReceived, [.remoteBytesReceived]),
            (\.remoteBytesSent, [.remoteBytesSent]),
        ]
    }

    // MARK: Derived

    /// Gets that found an unexpired value, in memory or on disk.
    public var hits: Int { memoryHits + diskHits }

    /// The share of gets that found a value, stale values included, from 0 to 1; nil if there was no get.
    ///
    /// A call that computes a missing value looks it up again before it computes, which counts as another get.
    public var hitRatio: Double? {
        let found = hits + staleHits
        let all = found + misses
        return all > 0 ? Double(found) / Double(all) : nil
    }

    /// Whether a larger limit would save many misses.
    ///
    /// True if at least half of the evicted values had been used shortly before, and at least a tenth of the misses were of
    /// keys that had been evicted shortly before.
    ///
    /// Neither condition alone means much: values that are requested only once are evicted young, whatever the limit, and a
    /// value that is requested again only after a month need not be kept. If the sample contains fewer than 4 misses, the
    /// estimate is left to chance, and the result is false.
    public var isBelowWorkingSet: Bool {
        ghostMisses >= 4 * EvictedKeys.sample && ghostMisses >= misses / 10 && youngEvictions * 2 >= evictions
            && evictions > 0
    }

    /// Returns the difference from `earlier`, an earlier reading.
    ///
    /// A count that is lower than in `earlier` was reset in between; its difference is counted from 0.
    public func since(_ earlier: CacheActivity) -> CacheActivity {
        func difference(_ now: Int, _ before: Int) -> Int { now >= before ? now - before : now }
        var activity = self
        for (field, _) in Self.fields {
            activity[keyPath: field] = difference(self[keyPath: field], earlier[keyPath: field])
        }
        activity.collected = Self.counts {
            difference(collected[$0, default: 0], earlier.collected[$0, default: 0])
        }
        activity.leftMemory = Self.counts {
            difference(leftMemory[$0, default: 0], earlier.leftMemory[$0, default: 0])
        }
        return activity
    }
}
