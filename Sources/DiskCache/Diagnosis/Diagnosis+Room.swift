// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// How much there is room for, and how much is wanted.
extension DirectoryFacts {
    /// Below that a cache can be expected to hit the end before somebody looks.
    private static let lowShare = 0.05

    var spaceFinding: Finding {
        let state = "\(Self.percent(space.availableBytes, of: space.totalBytes)) free"
        guard Self.isLow(Double(space.availableBytes), of: Double(space.totalBytes)) else {
            return Finding.fine("space", state)
        }
        return Finding.risk("space", state, "free some, or trim the cache with `diskcache gc --max-size`")
    }

    var inodesFinding: Finding {
        guard space.totalInodes > 0 else { return Finding.fine("inodes", "not limited") }
        let state =
            "\(Self.percent(Int64(clamping: space.availableInodes), of: Int64(clamping: space.totalInodes))) free"
        guard Self.isLow(Double(space.availableInodes), of: Double(space.totalInodes)) else {
            return Finding.fine("inodes", state)
        }
        return Finding.risk(
            "inodes",
            state,
            "delete files, or trim the cache with `diskcache gc --max-entries`"
        )
    }

    /// What a file system in memory may come to take.
    var memoryFinding: Finding? {
        guard fileSystem.isVolatile, let memory else { return nil }
        let limit = configuration?.maximumSize.map { max(0, $0 - (usedBytes ?? 0)) } ?? .max
        let growth = min(space.availableBytes, limit)
        guard growth > memory.available else {
            return Finding.fine(
                "memory",
                "\(Words.bytes(memory.available)) for \(Words.bytes(growth)) to come"
            )
        }
        return Finding.risk(
            "memory",
            """
            the cache may grow by \(Words.bytes(growth)), and \(Words.bytes(memory.available)) of memory are to be \
            had (swap: \(Words.bytes(memory.swap)))
            """,
            "set a limit below that (`diskcache config set max-size`), or mount it with a smaller size="
        )
    }

    var configurationFinding: Finding? {
        guard let configuration else { return nil }
        if let problem = configuration.problem {
            return Finding.risk(
                "config.json",
                problem,
                "mend it, or delete it and set the limits anew with `diskcache config`"
            )
        }
        if !configuration.unknownKeys.isEmpty {
            return Finding.risk(
                "config.json",
                "means nothing to this version: \(configuration.unknownKeys.joined(separator: ", "))",
                "correct the spelling (`diskcache config --help`), or use the version that wrote it everywhere"
            )
        }
        return Finding.fine("config.json", configuration.isThere ? "understood" : "none")
    }

    var limitFinding: Finding? {
        guard let configuration else { return nil }
        if let floor = configuration.minimumFree?.floor.bytes(of: space.totalBytes),
            floor > space.availableBytes + (usedBytes ?? 0)
        {
            return Finding.risk(
                "limit",
                """
                \(Words.bytes(floor)) are to stay free, and with an empty cache only \
                \(Words.bytes(space.availableBytes + (usedBytes ?? 0))) would be
                """,
                "nothing can be kept: free some, or lower it: `diskcache config set min-free 10%`"
            )
        }
        guard let limit = configuration.maximumSize else {
            if configuration.minimumFree != nil {
                return Finding.fine("limit", "by what is free on the file system")
            }
            return Finding.fallback(
                "limit",
                "no limit of size",
                "it may fill the file system: `diskcache config set max-size 2G`, or `min-free 10%`"
            )
        }
        if limit < parts.overhead {
            return Finding.risk(
                "limit",
                "\(Words.bytes(limit)), and directories and control file alone take \(Words.bytes(parts.overhead))",
                "no value fits: raise it with `diskcache config set max-size`"
            )
        }
        let growth = limit - (usedBytes ?? 0)
        if growth > space.availableBytes && configuration.minimumFree == nil {
            return Finding.risk(
                "limit",
                "\(Words.bytes(limit)), of which \(Words.bytes(growth)) are to come, but only "
                    + "\(Words.bytes(space.availableBytes)) are free",
                "lower it, or let the cache give way: `diskcache config set min-free 10%`"
            )
        }
        return Finding.fine(
            "limit",
            "\(Words.bytes(limit)), \(Self.percent(usedBytes ?? 0, of: limit)) in use"
        )
    }

    /// Whether what is evicted is wanted again soon.
    var workingSetFinding: Finding? {
        guard let evictions else { return nil }
        guard evictions.isHigh else {
            return Finding.fine("working set", evictions.evictions == 0 ? "nothing was evicted" : "fits")
        }
        return Finding.risk(
            "working set",
            """
            larger than the limit: of \(evictions.misses) misses about \(evictions.ghostMisses) were of values \
            evicted shortly before
            """,
            "raise the limit (`diskcache config set max-size`), or store less: with more room these would be hits"
        )
    }

    private static func isLow(_ available: Double, of total: Double) -> Bool {
        total > 0 && available / total < lowShare
    }

    private static func percent(_ available: Int64, of total: Int64) -> String {
        total > 0 ? "\(Int(Double(available) / Double(total) * 100)) %" : "unknown"
    }
}
