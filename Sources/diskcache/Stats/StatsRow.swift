// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// What was done between two readings of the counts.
struct StatsInterval {
    let activity: CacheActivity
    /// More than 0.
    let seconds: Double
}

/// One count as people read it.
struct StatsRow {
    let name: String
    let total: String
    /// Of an interval, or nothing.
    let rate: String

    /// The counts in their order; those of what is not used, and of what did not happen, are left out.
    static func all(_ activity: CacheActivity, _ interval: StatsInterval?) -> [StatsRow] {
        var rows = Rows(activity: activity, interval: interval)
        rows.add("hits", \.hits)
        rows.add("  in memory", \.memoryHits)
        rows.add("  on disk", \.diskHits)
        rows.addUsed("stale hits", \.staleHits)
        rows.add("misses", \.misses)
        rows.addRatio()
        rows.add("puts", \.puts)
        rows.add("removals", \.removals)
        rows.addBytes("read", \.bytesRead)
        rows.addBytes("written", \.bytesWritten)
        rows.addUsed("waits for room", \.roomWaits)
        rows.addUsed("puts without room", \.roomFailures)
        rows.addUsed("computations", \.computations)
        rows.addUsed("  in the background", \.refreshes)
        rows.addUsed("  failed", \.computeFailures)
        rows.addUsed("  without the cache", \.cacheFailures)
        rows.addUsed("waits on others", \.waits)
        rows.addSum("left memory", \.leftMemory, words)
        rows.addUsed("sweeps", \.sweeps)
        rows.addSum("removed by sweeps", \.swept, CollectCommand.words)
        rows.addUsed("  used 10 min before", \.youngEvictions)
        rows.addUsed("misses of evicted keys", \.ghostMisses)
        rows.addUsed("damaged", \.corruptions)
        rows.addUsed("value gone", \.danglingEntries)
        rows.addUsed("damage left to gc", \.unrepairedDamage)
        rows.addUsed("accesses not noted", \.unnotedAccesses)
        rows.addUsed("failed write-behind", \.publishFailures)
        rows.addUsed("no control file", \.controlFailures)
        return rows.rows
    }

    static func words(_ cause: RemovalCause) -> String {
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

    /// "92.5 %", rounded down: 100 % means that nothing was missed.
    static func percent(_ ratio: Double) -> String {
        let thousandths = Int(saturating: (ratio * 1000).rounded(.down))
        return "\(thousandths / 10).\(thousandths % 10) %"
    }

    /// Rows as they are added.
    private struct Rows {
        let activity: CacheActivity
        let interval: StatsInterval?
        var rows: [StatsRow] = []

        mutating func add(_ name: String, _ count: (CacheActivity) -> Int) {
            let rate = interval.map { number(Double(count($0.activity)) / $0.seconds) }
            append(name, Quantity.grouped(count(activity)), rate)
        }

        mutating func addUsed(_ name: String, _ count: (CacheActivity) -> Int) {
            if count(activity) != 0 { add(name, count) }
        }

        mutating func addBytes(_ name: String, _ count: (CacheActivity) -> Int) {
            let rate = interval.map { interval in
                let bytes = Double(count(interval.activity)) / interval.seconds
                return Quantity.text(bytes: Int64(Int(saturating: bytes)))
            }
            append(name, Quantity.text(bytes: Int64(count(activity))), rate)
        }

        mutating func addRatio() {
            func text(_ ratio: Double?) -> String { ratio.map(percent) ?? "-" }
            append("hit ratio", text(activity.hitRatio), interval.map { text($0.activity.hitRatio) })
        }

        mutating func addSum<Reason: CaseIterable & Hashable>(
            _ name: String,
            _ counts: (CacheActivity) -> [Reason: Int],
            _ words: (Reason) -> String
        ) {
            if counts(activity).isEmpty { return }
            add(name) { counts($0).values.reduce(0, +) }
            for reason in Reason.allCases {
                addUsed("  " + words(reason)) { counts($0)[reason, default: 0] }
            }
        }

        private mutating func append(_ name: String, _ total: String, _ rate: String?) {
            rows.append(StatsRow(name: name, total: total, rate: rate ?? ""))
        }

        /// One digit after the point where that says something.
        private func number(_ rate: Double) -> String {
            let tenths = Int(saturating: rate * 10)
            return tenths >= 1000 ? Quantity.grouped(tenths / 10) : "\(tenths / 10).\(tenths % 10)"
        }
    }
}
