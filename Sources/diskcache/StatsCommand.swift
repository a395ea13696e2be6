// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// `diskcache stats`.
enum StatsCommand: Command {
    static let name = "stats"
    static let operands = ""
    static let summary = "count what the cache holds"
    static let options = [Option.json]
    static let details = """
        Counted by a walk through the directory. Sizes are those on disk; the length of all values counts
        one that several keys share each time.

        JSON: path, entries, entryBytes, expiredEntries, objects, objectBytes, bytes (of both), logicalBytes,
        oldestAccess (of the next value to go when space runs short; left out where there is none).

        Exit status: 0 done; 64 usage; 73 no directory; 77 permission; 78 there is no cache.

        Example:
          diskcache stats --json
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...0, "no KEY")
        let cache = try arguments.requireCache()
        let statistics = try cache.statistics()
        if arguments.has("json") {
            try Output.print(JSON.line(Description(path: cache.path, statistics)))
        } else {
            try Output.print(text(statistics, path: cache.path, now: .now))
        }
        return .done
    }

    static func text(_ statistics: CacheStatistics, path: String, now: Date) -> String {
        let bytes = statistics.entryBytes + statistics.objectBytes
        var table = Table(.left, .right)
        table.add("keys", "\(statistics.entries)")
        table.add("  of them expired", "\(statistics.expiredEntries)")
        table.add("values", "\(statistics.objects)")
        table.add("on disk", Quantity.text(bytes: bytes))
        table.add("  of it metadata", Quantity.text(bytes: statistics.entryBytes))
        table.add("length of all values", Quantity.text(bytes: statistics.logicalBytes))
        if let oldest = statistics.oldestAccess {
            table.add("oldest access", "\(Quantity.text(from: oldest, to: now)) ago")
        }
        return "\(path.escaped)\n" + table.text
    }

    private struct Description: Encodable {
        let path: String
        let entries: Int
        let entryBytes: Int64
        let expiredEntries: Int
        let objects: Int
        let objectBytes: Int64
        let bytes: Int64
        let logicalBytes: Int64
        let oldestAccess: Date?

        init(path: String, _ statistics: CacheStatistics) {
            self.path = path
            entries = statistics.entries
            entryBytes = statistics.entryBytes
            expiredEntries = statistics.expiredEntries
            objects = statistics.objects
            objectBytes = statistics.objectBytes
            bytes = statistics.entryBytes + statistics.objectBytes
            logicalBytes = statistics.logicalBytes
            oldestAccess = statistics.oldestAccess
        }
    }
}
