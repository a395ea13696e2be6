// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// What `diskcache gc --last` prints for people.
enum LastSweepText {
    static func text(_ sweep: CacheStatistics.LastCollection, now: Date) -> String {
        head(sweep, now) + removed(sweep) + left(sweep)
    }

    private static func head(_ sweep: CacheStatistics.LastCollection, _ now: Date) -> String {
        var table = Table(.left, .left)
        table.add("process", "\(sweep.process)")
        table.add("began", Quantity.moment(sweep.began, now))
        if let ended = sweep.ended {
            table.add("took", took(sweep, ended))
        }
        table.add("end", StatsText.end(of: sweep))
        table.add("looked at", sweep.expiredOnly ? "expired values and leftovers" : "everything")
        if let lastFull = sweep.lastFull, lastFull != sweep.began {
            table.add("last full sweep", Quantity.moment(lastFull, now))
        }
        return table.text
    }

    private static func took(_ sweep: CacheStatistics.LastCollection, _ ended: Date) -> String {
        let took = Duration.seconds(ended.timeIntervalSince(sweep.began))
        // Without pauses it works a little longer than the time between the two notes.
        if sweep.worked >= took { return StatsText.span(took) }
        return "\(StatsText.span(took)), of which it worked \(StatsText.span(sweep.worked))"
    }

    private static func removed(_ sweep: CacheStatistics.LastCollection) -> String {
        // Said only when it ends.
        if sweep.ended == nil { return "" }
        if sweep.removed.isEmpty { return "removed nothing\n" }
        return CollectCommand.table(sweep.removed, heading: "REMOVED")
    }

    private static func left(_ sweep: CacheStatistics.LastCollection) -> String {
        // A sweep that was cut short has not counted everything.
        guard sweep.ended != nil, sweep.isComplete else { return "" }
        var text = "left: \(CollectCommand.words(left: sweep.entries, sweep.objects))\n"
        if let drift = sweep.drift, drift.count != 0 || drift.bytes != 0 {
            text += "added up before: \(off(drift.count, drift.bytes))\n"
        }
        return text
    }

    private static func off(_ entries: Int, _ bytes: Int64) -> String {
        func words(_ isMore: Bool) -> String { isMore ? "too many" : "too few" }
        let keys = "\(Quantity.count(abs(entries), "key")) \(words(entries > 0))"
        let size = "\(Quantity.text(bytes: abs(bytes))) \(bytes > 0 ? "too much" : "too little")"
        return [entries == 0 ? nil : keys, bytes == 0 ? nil : size].compactMap(\.self).joined(separator: ", ")
    }
}
