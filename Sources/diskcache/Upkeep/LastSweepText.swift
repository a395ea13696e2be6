// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// What `diskcache gc --last` prints for people.
enum LastSweepText {
    static func text(_ sweep: CacheStatistics.LastCollection, now: Date) -> String {
        var table = Table(.left, .left)
        table.add("process", "\(sweep.process)")
        table.add("began", Quantity.moment(sweep.began, now))
        if let ended = sweep.ended { table.add("took", took(sweep, ended)) }
        table.add("end", StatsText.end(of: sweep))
        table.add("looked at", sweep.expiredOnly ? "expired values and leftovers" : "everything")
        if let lastFull = sweep.lastFull, lastFull != sweep.began {
            table.add("last full sweep", Quantity.moment(lastFull, now))
        }
        var text = table.text
        // Said only when it ends.
        guard sweep.ended != nil else { return text }
        let isNothing = sweep.removed.isEmpty
        text += isNothing ? "removed nothing\n" : CollectCommand.table(sweep.removed, heading: "REMOVED")
        // A sweep that was cut short has not counted everything.
        guard sweep.isComplete else { return text }
        text += "left: \(CollectCommand.words(left: sweep.entries, sweep.objects))\n"
        if let drift = sweep.drift, drift.count != 0 || drift.bytes != 0 {
            text += "added up before: \(off(drift.count, drift.bytes))\n"
        }
        return text
    }

    private static func took(_ sweep: CacheStatistics.LastCollection, _ ended: Date) -> String {
        let took = Duration.seconds(ended.timeIntervalSince(sweep.began))
        // Without pauses it works a little longer than the time between the two notes.
        if sweep.worked >= took { return StatsText.span(took) }
        return "\(StatsText.span(took)), of which it worked \(StatsText.span(sweep.worked))"
    }

    private static func off(_ entries: Int, _ bytes: Int64) -> String {
        func words(_ isMore: Bool) -> String { isMore ? "too many" : "too few" }
        let keys = "\(Quantity.count(abs(entries), "key")) \(words(entries > 0))"
        let size = "\(Quantity.text(bytes: abs(bytes))) \(bytes > 0 ? "too much" : "too little")"
        return [entries == 0 ? nil : keys, bytes == 0 ? nil : size].compactMap(\.self).joined(separator: ", ")
    }
}
