// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// The text output of `diskcache stats`: sections of aligned rows.
enum StatsText {
    /// The columns of all sections: name, count and, if there is an interval, the rate per second.
    private static let columns: [Table.Alignment] = [.left, .right, .right]
    private static let widths = [24, 12, 14]

    private static func rows(_ rows: [[String]?]) -> String {
        rows.compactMap(\.self).map { Table.line($0, columns, widths: widths) }.joined()
    }

    /// Returns the results of a scan, and the counts of all processes.
    static func everything(
        _ path: String,
        _ statistics: CacheStatistics,
        _ remote: CacheActivity.Remote? = nil,
        now: Date
    ) -> String {
        var text = "\(path.escaped)\n" + contents(statistics, now: now)
        if let totals = statistics.totals {
            text += limits(totals) + "\n" + self.totals(totals, now: now) + advice(totals.activity)
        } else {
            text += "\nno control file: activity is not counted: run `diskcache doctor`\n"
        }
        return text + shared(remote) + "\n" + lastCollection(statistics.lastCollection, now: now)
    }

    /// Returns the counts of all processes: totals, and rates if there is an interval.
    static func counts(_ reading: StatsReading, now: Date, _ interval: StatsInterval? = nil) -> String {
        let totals = reading.totals
        return "\(reading.path.escaped)\n" + usage(totals.usage) + limits(totals) + "\n"
            + self.totals(totals, now: now, interval) + advice(totals.activity)
            + shared(reading.remote) + "\n" + lastCollection(reading.last, now: now)
    }

    /// Returns the state of the remote stores; empty if there are none.
    static func shared(_ remote: CacheActivity.Remote?) -> String {
        guard let remote, !remote.rows.isEmpty else { return "" }
        return "\n" + rows(remote.rows)
    }

    // MARK: Contents

    /// Returns the results of a scan.
    static func contents(_ statistics: CacheStatistics, now: Date) -> String {
        let bytes = statistics.entryBytes + statistics.objectBytes
        let unreadable = statistics.unreadableEntries
        return rows([
            ["keys", Quantity.grouped(statistics.entries)],
            ["  of these expired", Quantity.grouped(statistics.expiredEntries)],
            unreadable > 0 ? ["keys without metadata", Quantity.grouped(unreadable)] : nil,
            ["values", Quantity.grouped(statistics.objects)],
            ["on disk", Quantity.text(bytes: bytes)],
            ["  of this metadata", Quantity.text(bytes: statistics.entryBytes)],
            ["directories, own files", Quantity.text(bytes: statistics.overheadBytes)],
            ["total", Quantity.text(bytes: bytes + statistics.overheadBytes)],
            ["length of all values", Quantity.text(bytes: statistics.logicalBytes)],
            statistics.oldestAccess.map { ["oldest access", Quantity.ago($0, now)] },
        ])
    }

    /// Returns the results of a scan of selected keys.
    static func part(_ statistics: CacheStatistics, now: Date) -> String {
        rows([
            ["keys", Quantity.grouped(statistics.entries)],
            ["  of these expired", Quantity.grouped(statistics.expiredEntries)],
            ["values", Quantity.grouped(statistics.objects)],
            ["on disk", Quantity.text(bytes: statistics.entryBytes + statistics.objectBytes)],
            ["length of all values", Quantity.text(bytes: statistics.logicalBytes)],
            statistics.oldestAccess.map { ["oldest access", Quantity.ago($0, now)] },
        ])
    }

    /// Returns the directory's usage, as its processes have counted it.
    static func usage(_ usage: CacheStatistics.Usage) -> String {
        guard usage.isCounted else { return rows([["keys", "?"], ["on disk", "?", "until gc counts"]]) }
        return rows([
            ["keys", Quantity.grouped(usage.entries)], ["on disk", Quantity.text(bytes: usage.bytes)],
        ])
    }

    /// Returns the limits, and which share of each is used; empty without limits.
    static func limits(_ totals: CacheStatistics.Totals) -> String {
        let (limits, usage) = (totals.limits, totals.usage)
        let sizeShare = share(usage.bytes + usage.overheadBytes, of: limits.maximumSize?.bytes, usage)
        let keyShare = share(Int64(usage.entries), of: limits.maximumEntries.map { Int64($0) }, usage)
        return rows([
            limits.maximumSize.map { ["size limit", Quantity.text(bytes: $0.bytes), sizeShare] },
            limits.maximumEntries.map { ["key limit", Quantity.grouped($0), keyShare] },
            limits.minimumFree.map { ["minimum free space", Quantity.text($0)] },
            limits.maximumAge.map { ["maximum age", Quantity.text($0)] },
            limits.maximumIdleTime.map { ["maximum idle time", Quantity.text($0)] },
            totals.evictionAge.map { ["evicted when unused for", span($0)] },
        ])
    }

    private static func share(_ part: Int64, of whole: Int64?, _ usage: CacheStatistics.Usage) -> String {
        guard usage.isCounted, let whole, whole > 0 else { return "" }
        return StatsCounter.percent(Double(part) / Double(whole)) + " used"
    }

    /// Returns advice if the limits are too low for the working set; otherwise an empty text.
    static func advice(_ activity: CacheActivity) -> String {
        guard activity.isBelowWorkingSet else { return "" }
        let ratio = Double(activity.ghostMisses) / Double(max(1, activity.misses))
        return """
            the limits are smaller than the working set: \(StatsCounter.percent(min(1, ratio))) of the misses were \
            of keys evicted shortly before: raise them with `diskcache config set`

            """
    }

    // MARK: Activity

    static func span(_ since: Date?, now: Date) -> String {
        since.map { "for \(Quantity.text(from: $0, to: now))" } ?? "since it was created"
    }

    /// Returns the activity of all processes: totals, and rates if there is an interval.
    static func totals(_ totals: CacheStatistics.Totals, now: Date, _ interval: StatsInterval? = nil)
        -> String
    {
        let heading = [
            "all processes, \(span(totals.since, now: now))", "", interval == nil ? "" : "PER SECOND",
        ]
        let counts = StatsCounter.rows(totals.activity, interval)
        return rows([heading] + counts.map { ["  " + $0.name, $0.total, $0.rate] })
    }

    // MARK: The last collection

    /// Returns one line about the last collection; `gc --last` shows details.
    static func lastCollection(_ last: CacheStatistics.LastCollection?, now: Date) -> String {
        guard let last else { return "last collection: none yet\n" }
        var text = "last collection: "
        if let ended = last.ended {
            let span = span(.seconds(ended.timeIntervalSince(last.began)))
            text += "\(Quantity.ago(ended, now)) by process \(last.process), took \(span), "
        } else {
            text += "started \(Quantity.ago(last.began, now)) by process \(last.process), "
        }
        let count = last.removed.values.reduce(0) { $0 + $1.count }
        let removed = count == 0 ? "nothing" : "\(count) (\(Quantity.text(bytes: last.removedBytes)))"
        return text + "\(end(of: last)), removed \(removed)\n"
    }

    /// Returns whether a collection is running, complete or incomplete.
    static func end(of last: CacheStatistics.LastCollection) -> String {
        if last.ended == nil { return "running, or killed" }
        return last.isComplete ? "complete" : "incomplete"
    }

    /// Returns a duration; milliseconds below ten seconds, which most collections take.
    static func span(_ duration: Duration) -> String {
        if duration >= .seconds(10) { return Quantity.text(duration) }
        return "\(Int((duration.inSeconds * 1000).rounded())) ms"
    }
}
