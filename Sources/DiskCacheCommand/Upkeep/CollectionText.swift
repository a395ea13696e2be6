// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// Texts about collections, shared by several subcommands.
enum CollectionText {
    /// Returns the number of removals by reason.
    static func table(_ removed: [RemovalReason: CollectionReport.Tally], heading: String) -> String {
        var table = Table(.left, .right, .right)
        table.add(heading, "COUNT", "BYTES")
        for reason in RemovalReason.allCases {
            guard let tally = removed[reason] else { continue }
            table.add(words(reason), "\(tally.count)", Quantity.text(bytes: tally.bytes))
        }
        let count = removed.values.reduce(0) { $0 + $1.count }
        let bytes = removed.values.reduce(0) { $0 + $1.bytes }
        table.add("total", "\(count)", Quantity.text(bytes: bytes))
        return table.text
    }

    /// Returns "1 key, 2 values, 12.0 KiB".
    static func words(left entries: CollectionReport.Tally, _ objects: CollectionReport.Tally) -> String {
        Quantity.contents(keys: entries.count, values: objects.count, bytes: entries.bytes + objects.bytes)
    }

    static func words(_ reason: RemovalReason) -> String {
        switch reason {
        case .staleTemporary: "left behind"
        case .expired: "expired"
        case .cleared: "cleared"
        case .dangling: "value gone"
        case .corrupt: "damaged"
        case .orphan: "no key"
        case .age: "too old"
        case .idle: "unused"
        case .entries: "too many"
        case .size: "too large"
        case .freeSpace: "disk full"
        }
    }
}
