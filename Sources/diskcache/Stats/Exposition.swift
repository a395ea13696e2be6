// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// The counts in the text format that Prometheus reads, version 0.0.4.
///
/// <https://prometheus.io/docs/instrumenting/exposition_formats/>, with its rules for names: base units, and
/// `_total` after counters. Without times, which node_exporter's textfile collector refuses. Counters are there
/// from the start, at 0; gauges that nobody knows are left out.
struct Exposition {
    private(set) var text = ""
    private let directory: String

    /// - Parameter directory: the value of the label that every sample has.
    init(_ totals: CacheTotals, _ last: SweepSummary?, directory: String) {
        self.directory = directory
        if totals.usage.isCounted {
            gauge("entries", "Keys, as the processes have added them up.", totals.usage.entries)
            gauge("usage_bytes", "Bytes on disk, as the processes have added them up.", totals.usage.bytes)
        }
        addLimits(totals)
        if let since = totals.since {
            let help = "When the counts of all processes were 0."
            gauge("counting_start_timestamp_seconds", help, seconds(since))
        }
        addUse(totals.activity)
        addComputing(totals.activity)
        addFaults(totals.activity)
        addSweeping(totals.activity)
        addRoom(totals.activity)
        if let last { add(last) }
    }

    /// An absolute path: the label tells caches apart, wherever the command is run.
    static func label(forPath path: String) throws -> String {
        if path.hasPrefix("/") { return path }
        return String(decoding: try CurrentProcess.workingDirectory(), as: UTF8.self) + "/" + path
    }

    // MARK: Metrics

    private mutating func addUse(_ activity: CacheActivity) {
        counter("hits_total", "Gets that found a value that had not expired.", "tier") {
            [("memory", activity.memoryHits), ("disk", activity.diskHits)]
        }
        counter(
            "stale_hits_total",
            "Gets that found an expired value and had asked for it.",
            activity.staleHits
        )
        counter("misses_total", "Gets that found nothing.", activity.misses)
        counter("puts_total", "Values stored.", activity.puts)
        counter("removals_total", "Values removed by request.", activity.removals)
        counter("read_bytes_total", "Bytes of values read from disk.", activity.bytesRead)
        counter("written_bytes_total", "Bytes of values written to disk.", activity.bytesWritten)
        counter("memory_removals_total", "Values that left the memory of a process.", "cause") {
            RemovalCause.allCases.map { ($0.rawValue, activity.leftMemory[$0, default: 0]) }
        }
    }

    private mutating func addLimits(_ totals: CacheTotals) {
        let limits = totals.limits
        gauge(
            "overhead_bytes",
            "Bytes on disk of directories and the cache's own files.",
            totals.usage.overheadBytes
        )
        if let size = limits.maximumSize {
            gauge("limit_bytes", "Bytes on disk that usage and overhead may take.", size.bytes)
        }
        if let most = limits.maximumEntries { gauge("limit_entries", "Keys that there may be.", most) }
        if let age = totals.evictionAge {
            let help = "How long what was evicted last for want of room had not been used."
            gauge("eviction_age_seconds", help, age.inSeconds)
        }
    }

    private mutating func addRoom(_ activity: CacheActivity) {
        counter("room_waits_total", "Puts that had to wait for room.", activity.roomWaits)
        counter("room_failures_total", "Puts that failed for want of room.", activity.roomFailures)
        counter(
            "young_evictions_total",
            "Evictions for want of room of values used within ten minutes before.",
            activity.youngEvictions
        )
        counter(
            "ghost_misses_total",
            "Misses of keys evicted shortly before, estimated from a sample.",
            activity.ghostMisses
        )
    }

    private mutating func addComputing(_ activity: CacheActivity) {
        counter("computations_total", "Computations begun, in the background or not.", activity.computations)
        counter("refreshes_total", "Of the computations, those in the background.", activity.refreshes)
        counter("computation_failures_total", "Computations that failed.", activity.computeFailures)
        counter(
            "uncached_computations_total",
            "Values computed without the cache, as it could not be read, locked or written.",
            activity.cacheFailures
        )
        counter("waits_total", "Waits for a computation of somebody else.", activity.waits)
    }

    private mutating func addFaults(_ activity: CacheActivity) {
        counter("faults_total", "What went wrong without failing a call.", "kind") {
            [
                ("corruption", activity.corruptions), ("dangling_entry", activity.danglingEntries),
                ("unrepaired_damage", activity.unrepairedDamage),
                ("unnoted_access", activity.unnotedAccesses),
                ("publish_failure", activity.publishFailures),
                ("control_failure", activity.controlFailures),
            ]
        }
    }

    private mutating func addSweeping(_ activity: CacheActivity) {
        counter("sweeps_total", "Sweeps that ran to their end.", activity.sweeps)
        counter("swept_total", "What sweeps removed.", "reason") {
            RemovalReason.allCases.map { ($0.rawValue, activity.swept[$0, default: 0]) }
        }
    }

    private mutating func add(_ last: SweepSummary) {
        gauge("last_sweep_start_timestamp_seconds", "When the last sweep began.", seconds(last.began))
        guard let ended = last.ended else { return }
        gauge("last_sweep_end_timestamp_seconds", "When the last sweep ended.", seconds(ended))
        gauge(
            "last_sweep_worked_seconds",
            "How long the last sweep worked, its rests left out.",
            last.worked.inSeconds
        )
        gauge("last_sweep_complete", "1: the last sweep ran to its end.", last.isComplete ? 1 : 0)
        gauge("last_sweep_removed_bytes", "Bytes on disk that the last sweep set free.", last.removedBytes)
    }

    /// To the millisecond, which a Double of this size still has.
    private func seconds(_ date: Date) -> Double {
        (date.timeIntervalSince1970 * 1000).rounded() / 1000
    }

    // MARK: Lines

    private mutating func gauge(_ name: String, _ help: String, _ value: some LosslessStringConvertible) {
        head(name, "gauge", help)
        sample(name, nil, "\(value)")
    }

    private mutating func counter(_ name: String, _ help: String, _ value: Int) {
        head(name, "counter", help)
        sample(name, nil, "\(value)")
    }

    private mutating func counter(
        _ name: String,
        _ help: String,
        _ label: String,
        _ values: () -> [(String, Int)]
    ) {
        head(name, "counter", help)
        for (value, count) in values() { sample(name, (label, value), "\(count)") }
    }

    private mutating func head(_ name: String, _ type: String, _ help: String) {
        text += "# HELP diskcache_\(name) \(help)\n# TYPE diskcache_\(name) \(type)\n"
    }

    private mutating func sample(_ name: String, _ label: (name: String, value: String)?, _ value: String) {
        var labels = "directory=\"\(Self.escaped(directory))\""
        if let label { labels += ",\(label.name)=\"\(Self.escaped(label.value))\"" }
        text += "diskcache_\(name){\(labels)} \(value)\n"
    }

    /// As a label's value has it: backslash, quote and line feed escaped, and nothing else.
    ///
    /// What a terminal acts upon is written as C does it, and the backslash of that escaped.
    static func escaped(_ value: String) -> String {
        value.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            var text = ""
            for scalar in String(line).singleLine.unicodeScalars {
                switch scalar {
                case "\\": text += "\\\\"
                case "\"": text += "\\\""
                default: text.unicodeScalars.append(scalar)
                }
            }
            return text
        }.joined(separator: "\\n")
    }
}
