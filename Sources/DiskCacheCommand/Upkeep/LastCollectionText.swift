// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// The text output of `diskcache gc --last`.
enum LastCollectionText {
    static func text(_ last: CacheStatistics.LastCollection, now: Date) -> String {
        var table = Table(.left, .left)
        table.add("process", "\(last.process)")
        table.add("began", Quantity.moment(last.began, now))
        if let ended = last.ended { table.add("took", took(last, ended)) }
        table.add("end", StatsText.end(of: last))
        table.add("scanned", last.expiredOnly ? "expired values and leftovers" : "everything")
        if let lastFull = last.lastFull, lastFull != last.began {
            table.add("last full collection", Quantity.moment(lastFull, now))
        }
        var text = table.text
        // The following is known only after the collection has ended.
        guard last.ended != nil else { return text }
        let isNothing = last.removed.isEmpty
        text += isNothing ? "removed nothing\n" : CollectionText.table(last.removed, heading: "REMOVED")
        // An incomplete collection has not counted all that is left.
        guard last.isComplete else { return text }
        text += "left: \(CollectionText.words(left: last.entries, last.objects))\n"
        if let drift = last.drift, drift.count != 0 || drift.bytes != 0 {
            text += "counted before: \(off(drift.count, drift.bytes))\n"
        }
        return text
    }

    private static func took(_ last: CacheStatistics.LastCollection, _ ended: Date) -> String {
        let took = Duration.seconds(ended.timeIntervalSince(last.began))
        // Without pauses, the measured work takes slightly longer than the time between the two time stamps.
        if last.worked >= took { return StatsText.span(took) }
        return "\(StatsText.span(took)), \(StatsText.span(last.worked)) of it without pauses"
    }

    private static func off(_ entries: Int, _ bytes: Int64) -> String {
        func words(_ isMore: Bool) -> String { isMore ? "too many" : "too few" }
        let keys = "\(Quantity.count(abs(entries), "key")) \(words(entries > 0))"
        let size = "\(Quantity.text(bytes: abs(bytes))) \(bytes > 0 ? "too much" : "too little")"
        return [entries == 0 ? nil : keys, bytes == 0 ? nil : size].compactMap(\.self).joined(separator: ", ")
    }
}
