// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// One count of ``CacheActivity``, as `stats` shows it to people and to Prometheus; its JSON is the library's own.
///
/// A new count is a line in ``all``, one in ``Exposition/help``, and its name in the help of ``StatsCommand``.
struct StatsCounter {
    /// When its row is shown, and how.
    enum Style {
        case always, alwaysAsBytes
        /// Where it is not 0.
        case used
    }

    let row: String
    let count: (CacheActivity) -> Int
    let style: Style
    /// The metric, without "diskcache_" and "_total"; nil: there are others that add up to it.
    let metric: String?
    /// What tells it from others of the metric.
    let label: (name: String, value: String)?

    init(
        _ row: String,
        _ count: @escaping (CacheActivity) -> Int,
        _ metric: String?,
        _ label: (String, String)? = nil,
        style: Style = .used
    ) {
        self.row = row
        self.count = count
        self.style = style
        self.metric = metric
        self.label = label
    }

    /// In the order of the rows.
    static var all: [StatsCounter] {
        [
            .init("hits", \.hits, nil, style: .always),
            .init("  in memory", \.memoryHits, "hits", ("tier", "memory"), style: .always),
            .init("  on disk", \.diskHits, "hits", ("tier", "disk"), style: .always),
            .init("stale hits", \.staleHits, "stale_hits"),
            .init("misses", \.misses, "misses", style: .always),
            .init("puts", \.puts, "puts", style: .always),
            .init("removals", \.removals, "removals", style: .always),
            .init("read", \.bytesRead, "read_bytes", style: .alwaysAsBytes),
            .init("written", \.bytesWritten, "written_bytes", style: .alwaysAsBytes),
            .init("waits for room", \.roomWaits, "room_waits"),
            .init("puts without room", \.roomFailures, "room_failures"),
            .init("computations", \.computations, "computations"),
            .init("  in the background", \.refreshes, "refreshes"),
            .init("  failed", \.computeFailures, "computation_failures"),
            .init("  without the cache", \.cacheFailures, "uncached_computations"),
            .init("waits on others", \.waits, "waits"),
        ]
            + sum("left memory", \.leftMemory, words, "memory_removals", "cause")
            + [.init("collections", \.collections, "collections")]
            + sum("removed by collections", \.collected, CollectCommand.words, "collected", "reason")
            + [
                .init("  used 10 min before", \.youngEvictions, "young_evictions"),
                .init("misses of evicted keys", \.ghostMisses, "ghost_misses"),
                .init("damaged", \.corruptions, "faults", ("kind", "corruption")),
                .init("value gone", \.danglingEntries, "faults", ("kind", "dangling_entry")),
                .init("damage left to gc", \.unrepairedDamage, "faults", ("kind", "unrepaired_damage")),
                .init("accesses not noted", \.unnotedAccesses, "faults", ("kind", "unnoted_access")),
                .init("failed write-behind", \.publishFailures, "faults", ("kind", "publish_failure")),
                .init("no control file", \.controlFailures, "faults", ("kind", "control_failure")),
            ]
    }

    /// All of what is counted by reason, and each reason below it.
    private static func sum<Reason: CaseIterable & Hashable & RawRepresentable<String>>(
        _ row: String,
        _ counts: @escaping (CacheActivity) -> [Reason: Int],
        _ words: (Reason) -> String,
        _ metric: String,
        _ label: String
    ) -> [StatsCounter] {
        [.init(row, { counts($0).values.reduce(0, +) }, nil)]
            + Reason.allCases.map { reason in
                .init(
                    "  " + words(reason),
                    { counts($0)[reason, default: 0] },
                    metric,
                    (label, reason.rawValue)
                )
            }
    }

    private static func words(_ cause: CacheEvent.RemovalCause) -> String {
        switch cause {
        case .explicit: "removed"
        case .replaced: "replaced"
        case .expired: "expired"
        case .cost: "too large"
        case .count: "too many"
        case .invalidated: "changed elsewhere"
        case .pressure: "memory was short"
        }
    }

    // MARK: Rows

    /// A count as people read it, with its rate in an interval, or nothing.
    typealias Row = (name: String, total: String, rate: String)

    /// The counts in their order; those of what is not used, and of what did not happen, are left out.
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

    /// "92.5 %", rounded down: 100 % means that nothing was missed.
    static func percent(_ ratio: Double) -> String {
        Quantity.tenths((ratio * 1000).rounded(.down) / 10) + " %"
    }

    /// One digit after the point where that says something.
    private static func number(_ rate: Double) -> String {
        rate >= 99.95 ? Quantity.grouped(Int(saturating: rate * 10) / 10) : Quantity.tenths(rate)
    }
}

/// What was done between two readings of the counts.
struct StatsInterval {
    let activity: CacheActivity
    /// More than 0.
    let seconds: Double

    /// How much of it was done in a second, on the average.
    func rate(_ count: (CacheActivity) -> Int) -> Double {
        Double(count(activity)) / seconds
    }
}
