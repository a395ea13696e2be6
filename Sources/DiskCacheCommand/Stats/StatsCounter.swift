// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// A count of ``CacheActivity`` as `stats` shows it to users and to Prometheus; the library defines its JSON.
///
/// A new count needs a row in ``all``, and its name in ``help``.
struct StatsCounter {
    /// When a row is shown, and in which format.
    enum Style {
        case always, alwaysAsBytes
        /// Shown only if it is not 0.
        case used
    }

    /// The Prometheus metric.
    struct Metric {
        /// The name without "diskcache_" and "_total".
        let name: String
        /// The description.
        let help: String
        /// The label that distinguishes this sample from other samples of the metric.
        let label: (name: String, value: String)?
    }

    let row: String
    let count: (CacheActivity) -> Int
    let style: Style
    /// The metric; nil if the metrics of other counts add up to this count.
    private(set) var metric: Metric?

    init(_ row: String, _ count: @escaping (CacheActivity) -> Int, style: Style = .used) {
        self.row = row
        self.count = count
        self.style = style
    }

    /// Returns the count with a Prometheus metric.
    private func metric(_ name: String, _ help: String, _ label: (String, String)? = nil) -> StatsCounter {
        var counter = self
        counter.metric = Metric(name: name, help: help, label: label)
        return counter
    }

    /// All counts, in the order of the rows.
    static var all: [StatsCounter] {
        [
            .init("hits", \.hits, style: .always),
            .init("  in memory", \.memoryHits, style: .always).hits("memory"),
            .init("  on disk", \.diskHits, style: .always).hits("disk"),
            .init("stale hits", \.staleHits)
                .metric("stale_hits", "Gets that found an expired value and had asked for stale ones."),
            .init("misses", \.misses, style: .always).metric("misses", "Gets that found nothing."),
            .init("  known to have no value", \.negativeHits)
                .metric("negative_hits", "Misses of keys that were known to have no value."),
            .init("puts", \.puts, style: .always).metric("puts", "Values stored."),
            .init("removals", \.removals, style: .always).metric("removals", "Values removed by request."),
            .init("bulk removals", \.removalRules)
                .metric("removal_rules", "Calls that removed many values at once, or had them expire."),
            .init("read", \.bytesRead, style: .alwaysAsBytes)
                .metric("read_bytes", "Bytes of values read from disk."),
            .init("written", \.bytesWritten, style: .alwaysAsBytes)
                .metric("written_bytes", "Bytes of values written to disk."),
            .init("waits for space", \.roomWaits).metric("room_waits", "Puts that had to wait for room."),
            .init("puts without space", \.roomFailures)
                .metric("room_failures", "Puts that failed because no room could be made."),
            .init("computations", \.computations)
                .metric("computations", "Computations started, in the background or not."),
            .init("  in the background", \.refreshes).metric("refreshes", "Computations in the background."),
            .init("  failed", \.computeFailures).metric("computation_failures", "Computations that failed."),
            .init("  without the cache", \.cacheFailures)
                .metric(
                    "uncached_computations",
                    "Values computed without the cache because it could not be read, locked or written."
                ),
            .init("waits for others", \.waits).metric("waits", "Waits for a computation by another caller."),
        ]
            + sum("left memory", \.leftMemory, words) {
                $0.metric("memory_removals", "Values that left the memory of a process.", ("cause", $1))
            }
            + [.init("collections", \.collections).metric("collections", "Collections that were completed.")]
            + sum("removed by collections", \.collected, CollectionText.words) {
                $0.metric("collected", "What collections removed, by reason.", ("reason", $1))
            }
            + [
                .init("  used 10 min before", \.youngEvictions)
                    .metric(
                        "young_evictions",
                        "Evictions of values that had been used within ten minutes before."
                    ),
                .init("misses of evicted keys", \.ghostMisses)
                    .metric(
                        "ghost_misses",
                        "Misses of keys evicted shortly before, estimated from a sample."
                    ),
                .init("remote hits", \.remoteHits)
                    .metric("remote_hits", "Misses for which another machine's store had a value."),
                .init("  misses", \.remoteMisses)
                    .metric("remote_misses", "Misses for which no other machine's store had a value."),
                .init("  skipped", \.remoteSkips)
                    .metric("remote_skips", "Misses for which no other machine's store was asked."),
                .init("  failed", \.remoteErrors)
                    .metric("remote_errors", "Requests to other machines' stores that failed."),
                .init("  timed out", \.remoteTimeouts)
                    .metric("remote_timeouts", "Requests to other machines' stores without answer in time."),
                .init("  damaged", \.remoteCorruptions)
                    .metric("remote_corruptions", "Values of other machines' stores that were damaged."),
                .init("remote writes", \.remoteWrites)
                    .metric("remote_writes", "Keys sent to other machines' stores, or removed there."),
                .init("  dropped", \.remoteDrops)
                    .metric("remote_drops", "Keys that were to be sent to other machines and were not."),
                .init("remote bytes received", \.remoteBytesReceived)
                    .metric("remote_received_bytes", "Bytes of values from other machines' stores."),
                .init("remote bytes sent", \.remoteBytesSent)
                    .metric("remote_sent_bytes", "Bytes of values sent to other machines' stores."),
                .init("damaged", \.corruptions).fault("corruption"),
                .init("value gone", \.danglingEntries).fault("dangling_entry"),
                .init("damage left to gc", \.unrepairedDamage).fault("unrepaired_damage"),
                .init("accesses not recorded", \.unnotedAccesses).fault("unnoted_access"),
                .init("failed write-behind", \.publishFailures).fault("publish_failure"),
                .init("no control file", \.controlFailures).fault("control_failure"),
            ]
    }

    /// The section about the counts' names in JSON, in the help text of `stats`.
    static let help = """
        memoryHits, diskHits, staleHits, misses, negativeHits (of keys known to have no value), hitRatio, puts,
        removals, removalRules (of many at once), bytesRead, bytesWritten; roomWaits, roomFailures,
        youngEvictions (of values used less than 10 minutes before), ghostMisses (of keys evicted shortly
        before, estimated from a sample); computations, waits, refreshes, computeFailures, cacheFailures;
        corruptions, danglingEntries, unnotedAccesses, unrepairedDamage, publishFailures, controlFailures;
        remoteHits, remoteMisses, remoteSkips, remoteErrors, remoteTimeouts, remoteCorruptions, remoteWrites,
        remoteDrops, remoteBytesReceived, remoteBytesSent (all of remote stores);
        collections, collected by reason, leftMemory by cause
        """

    private func hits(_ tier: String) -> StatsCounter {
        metric("hits", "Gets that found a value that had not expired.", ("tier", tier))
    }

    private func fault(_ kind: String) -> StatsCounter {
        metric("faults", "What went wrong without failing a call.", ("kind", kind))
    }

    /// Returns a count for the total, followed by a count with its `metric` for each reason.
    private static func sum<Reason: CaseIterable & Hashable & RawRepresentable<String>>(
        _ row: String,
        _ counts: @escaping (CacheActivity) -> [Reason: Int],
        _ words: (Reason) -> String,
        _ metric: (StatsCounter, String) -> StatsCounter
    ) -> [StatsCounter] {
        [.init(row, { counts($0).values.reduce(0, +) })]
            + Reason.allCases.map { reason in
                metric(.init("  " + words(reason), { counts($0)[reason, default: 0] }), reason.rawValue)
            }
    }

    private static func words(_ cause: MemoryRemovalCause) -> String {
        switch cause {
        case .explicit: "removed"
        case .replaced: "replaced"
        case .expired: "expired"
        case .cost: "too large"
        case .count: "too many"
        case .invalidated: "changed elsewhere"
        case .pressure: "memory pressure"
        }
    }

    // MARK: Rows

    /// A formatted count, and its rate, which is empty without an interval.
    typealias Row = (name: String, total: String, rate: String)

    /// Returns the counts in order, except those that are 0 and not always shown.
    static func rows(_ activity: CacheActivity, _ interval: StatsInterval?) -> [Row] {
        var rows = all.filter { $0.style != .used || $0.count(activity) != 0 }.map { counter -> Row in
            let (total, rate) = (counter.count(activity), interval?.rate(counter.count))
            if counter.style == .alwaysAsBytes {
                let rate = rate.map { Quantity.text(bytes: Int64(Int(saturating: $0))) } ?? ""
                return (counter.row, Quantity.text(bytes: Int64(total)), rate)
            }
            return (counter.row, Quantity.grouped(total), rate.map(number) ?? "")
        }
        func ratio(_ activity: CacheActivity) -> String { activity.hitRatio.map(percent) ?? "-" }
        let rate = interval.map { ratio($0.activity) } ?? ""
        let place = rows.firstIndex { $0.name == "puts" } ?? 0
        rows.insert(("hit ratio", ratio(activity), rate), at: place)
        return rows
    }

    /// Returns a percentage such as "92.5 %", rounded down, so that 100 % means no misses at all.
    static func percent(_ ratio: Double) -> String {
        Quantity.tenths((ratio * 1000).rounded(.down) / 10) + " %"
    }

    /// Returns a rate, with one decimal place if it is below 99.95.
    private static func number(_ rate: Double) -> String {
        rate >= 99.95 ? Quantity.grouped(Int(saturating: rate * 10) / 10) : Quantity.tenths(rate)
    }
}

/// The activity in the interval between two readings.
struct StatsInterval {
    let activity: CacheActivity
    /// The length of the interval, greater than 0.
    let seconds: Double

    /// Returns the average rate per second of a count.
    func rate(_ count: (CacheActivity) -> Int) -> Double {
        Double(count(activity)) / seconds
    }
}
