// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

extension CacheStatistics {
    /// The results of a scan; `stats` adds ``CacheStatistics/Totals/json``.
    var json: JSON.Object {
        [
            "entries": entries, "entryBytes": entryBytes, "expiredEntries": expiredEntries,
            "unreadableEntries": unreadableEntries, "objects": objects, "objectBytes": objectBytes,
            "bytes": entryBytes + objectBytes, "overheadBytes": overheadBytes, "logicalBytes": logicalBytes,
            "oldestAccess": oldestAccess,
        ]
    }
}

extension CacheStatistics {
    /// The results of a scan of selected keys, without the numbers that only a scan of all keys provides.
    var partJSON: JSON.Object {
        [
            "entries": entries, "entryBytes": entryBytes, "expiredEntries": expiredEntries,
            "objects": objects, "objectBytes": objectBytes, "bytes": entryBytes + objectBytes,
            "logicalBytes": logicalBytes, "oldestAccess": oldestAccess,
        ]
    }
}

extension CacheStatistics.Totals {
    /// The counts of all processes, and derived values.
    var json: JSON.Object {
        [
            "totals": counts, "usage": usage, "limits": limits, "evictionAgeSeconds": evictionAge?.inSeconds,
            "isBelowWorkingSet": activity.isBelowWorkingSet,
        ]
    }

    /// The counts of all processes.
    var counts: JSON.Object {
        JSON.Object(activity, ["since": since, "hitRatio": activity.hitRatio] as JSON.Object)
    }
}

extension CacheStatistics.LastCollection {
    /// The collection, with durations in seconds and derived values.
    var json: JSON.Object {
        [
            "process": process, "began": began, "ended": ended,
            "seconds": ended.map { ($0.timeIntervalSince(began) * 1000).rounded() / 1000 },
            "workedSeconds": worked.inSeconds, "expiredOnly": expiredOnly, "isComplete": isComplete,
            "removed": removed, "removedBytes": removedBytes, "entries": entries, "objects": objects,
            "drift": drift, "lastFull": lastFull,
        ]
    }
}

extension StatsInterval {
    /// The average rates per second.
    var perSecond: [String: Double] {
        let counts: [String: (CacheActivity) -> Int] = [
            "hits": { $0.hits + $0.staleHits }, "misses": \.misses, "puts": \.puts, "removals": \.removals,
            "bytesRead": \.bytesRead, "bytesWritten": \.bytesWritten, "computations": \.computations,
            "waits": \.waits, "collected": { $0.collected.values.reduce(0, +) },
        ]
        return counts.mapValues { (rate($0) * 100).rounded() / 100 }
    }
}
