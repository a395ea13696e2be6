// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// The counts in the Prometheus text format, version 0.0.4.
///
/// See <https://prometheus.io/docs/instrumenting/exposition_formats/>, and its rules for names: base units, and `_total`
/// at the end of counters. There are no timestamps, because node_exporter's textfile collector rejects them. Counters
/// start at 0 and are always present; unknown gauges are omitted.
struct Exposition {
    private(set) var text = ""
    private let directory: String

    /// Creates the text.
    ///
    /// - Parameter directory: The value of the `directory` label, which every sample has.
    init(
        _ totals: CacheStatistics.Totals,
        _ last: CacheStatistics.LastCollection?,
        _ remote: CacheActivity.Remote? = nil,
        directory: String
    ) {
        self.directory = directory
        let usage: CacheStatistics.Usage? = totals.usage.isCounted ? totals.usage : nil
        gauge("entries", usage?.entries)
        gauge("usage_bytes", usage?.bytes)
        gauge("overhead_bytes", totals.usage.overheadBytes)
        gauge("limit_bytes", totals.limits.maximumSize?.bytes)
        gauge("limit_entries", totals.limits.maximumEntries)
        gauge("eviction_age_seconds", totals.evictionAge?.inSeconds)
        gauge("counting_start_timestamp_seconds", totals.since.map(seconds))
        var previous = ""
        for counter in StatsCounter.all {
            guard let metric = counter.metric else { continue }
            let name = metric.name + "_total"
            if name != previous { head(name, metric.help, "counter") }
            sample(name, metric.label, "\(counter.count(totals.activity))")
            previous = name
        }
        if let remote { add(remote) }
        gauge("last_collection_start_timestamp_seconds", last.map { seconds($0.began) })
        guard let last, let ended = last.ended else { return }
        gauge("last_collection_end_timestamp_seconds", seconds(ended))
        gauge("last_collection_worked_seconds", last.worked.inSeconds)
        gauge("last_collection_complete", last.isComplete ? 1 : 0)
        gauge("last_collection_removed_bytes", last.removedBytes)
    }

    /// Appends the state of the remote stores.
    private mutating func add(_ remote: CacheActivity.Remote) {
        gauge("remote_waiting", remote.waiting)
        if remote.servers.isEmpty { return }
        head(
            "remote_server_up",
            "1 if the remote store is in use, 0 while its circuit breaker is open.",
            "gauge"
        )
        for server in remote.servers {
            sample("remote_server_up", ("server", server.name), server.breaker == "closed" ? "1" : "0")
        }
    }

    /// One line per gauge: its name and its description.
    private static let gauges = """
        entries Keys, as the processes have added them up.
        usage_bytes Bytes on disk, as the processes have added them up.
        overhead_bytes Bytes on disk of directories and the cache's own files.
        limit_bytes Bytes on disk that usage and overhead may take together.
        limit_entries Keys that the directory may hold.
        eviction_age_seconds How long the value evicted last had not been used.
        counting_start_timestamp_seconds When counting began.
        remote_waiting Changed keys that are not sent to the remote stores yet.
        last_collection_start_timestamp_seconds When the last collection began.
        last_collection_end_timestamp_seconds When the last collection ended.
        last_collection_worked_seconds How long the last collection worked, not counting pauses.
        last_collection_complete 1 if the last collection was completed.
        last_collection_removed_bytes Bytes on disk that the last collection freed.
        """

    /// Returns a time in seconds, rounded to milliseconds, the precision of a Double of this size.
    private func seconds(_ date: Date) -> Double {
        (date.timeIntervalSince1970 * 1000).rounded() / 1000
    }

    // MARK: Lines

    private mutating func gauge(_ name: String, _ value: (some LosslessStringConvertible)?) {
        guard let value else { return }
        let line = Self.gauges.split(separator: "\n").first { $0.hasPrefix(name + " ") } ?? ""
        head(name, line.dropFirst(name.count + 1), "gauge")
        sample(name, nil, "\(value)")
    }

    private mutating func head(_ name: String, _ help: some StringProtocol, _ type: String) {
        text += "# HELP diskcache_\(name) \(help)\n# TYPE diskcache_\(name) \(type)\n"
    }

    private mutating func sample(_ name: String, _ label: (name: String, value: String)?, _ value: String) {
        var labels = "directory=\"\(Self.escaped(directory))\""
        if let label { labels += ",\(label.name)=\"\(Self.escaped(label.value))\"" }
        text += "diskcache_\(name){\(labels)} \(value)\n"
    }

    /// Escapes the value of a label, in which only backslash, quote and line feed have escapes.
    ///
    /// Characters that a terminal interprets are first escaped as in C; the backslash of that escape is then escaped.
    static func escaped(_ value: String) -> String {
        value.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            String(line).singleLine.unicodeScalars.reduce(into: "") { text, scalar in
                if scalar == "\\" || scalar == "\"" { text += "\\" }
                text.unicodeScalars.append(scalar)
            }
        }.joined(separator: "\\n")
    }
}
