// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

extension CacheStatistics {
    /// What a scan has counted, as `stats` writes it besides ``CacheStatistics.Totals/json(_:)``.
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
    /// The same of some of the keys: without what is counted with all of them only.
    var partJSON: JSON.Object {
        [
            "entries": entries, "entryBytes": entryBytes, "expiredEntries": expiredEntries,
            "objects": objects, "objectBytes": objectBytes, "bytes": entryBytes + objectBytes,
            "logicalBytes": logicalBytes, "oldestAccess": oldestAccess,
        ]
    }
}

extension CacheStatistics.Totals {
    /// What all processes have counted, and what follows from it.
    var json: JSON.Object {
        [
            "totals": counts, "usage": usage, "limits": limits, "evictionAgeSeconds": evictionAge?.inSeconds,
            "isBelowWorkingSet": activity.isBelowWorkingSet,
        ]
    }

    /// The counts alone.
    var counts: JSON.Object {
        JSON.Object(activity, ["since": since, "hitRatio": activity.hitRatio] as JSON.Object)
    }
}

extension CacheStatistics.LastCollection {
    /// Spans in seconds, and what follows from the rest.
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
    /// What was done in a second, on the average.
    var perSecond: [String: Double] {
        let counts: [String: (CacheActivity) -> Int] = [
            "hits": { $0.hits + $0.staleHits }, "misses": \.misses, "puts": \.puts, "removals": \.removals,
            "bytesRead": \.bytesRead, "bytesWritten": \.bytesWritten, "computations": \.computations,
            "waits": \.waits, "collected": { $0.collected.values.reduce(0, +) },
        ]
        return counts.mapValues { (rate($0) * 100).rounded() / 100 }
    }
}
