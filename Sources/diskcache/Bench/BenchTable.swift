// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// A benchmark's result for people.
struct BenchTable {
    private static let heads = [
        "workload", "size", "procs", "ops/s", "get p50", "p99 µs", "put p50", "p99 µs", "hits", "misses",
        "wrong", "moved",
    ]

    static func text(_ result: BenchResult) -> String {
        var text = table([heads] + result.rows.map(cells))
        for row in result.rows { text += remarks(on: row) }
        if let leftovers = result.leftovers { text += summary(leftovers) }
        for note in result.notes { text += note + "\n" }
        text += list("wrong value", result.wrongValues)
        text += list("failed", result.failures)
        text += list("crashed", result.crashes)
        return text
    }

    private static func cells(_ row: BenchRow) -> [String] {
        [
            row.workload.rawValue, row.valueBytes.map { Quantity.text(bytes: Int64($0)) } ?? "corpus",
            "\(row.workers)", Quantity.grouped(Int(row.operationsPerSecond.rounded())),
            micros(row.getP50Microseconds), micros(row.getP99Microseconds),
            micros(row.putP50Microseconds), micros(row.putP99Microseconds),
            Quantity.grouped(row.hits), Quantity.grouped(row.misses), Quantity.grouped(row.wrong),
            Quantity.text(bytes: row.bytesRead + row.bytesWritten),
        ]
    }

    /// Columns as wide as their widest cell; the first to the left, all others to the right.
    private static func table(_ rows: [[String]]) -> String {
        let widths = heads.indices.map { column in rows.map { $0[column].columns }.max() ?? 0 }
        let columns = heads.indices.map { $0 == 0 ? Table.Alignment.left : .right }
        return rows.map { Table.line($0, columns, widths: widths) }.joined()
    }

    private static func remarks(on row: BenchRow) -> String {
        var parts: [String] = []
        if row.isCut { parts.append("ended early, having written as much as it may") }
        if row.kills > 0 { parts.append(Quantity.grouped(row.kills, "kill")) }
        if row.sweeps > 0 {
            let removed = Quantity.grouped(row.swept, "file")
            parts.append("\(Quantity.grouped(row.sweeps, "sweep")) removed \(removed)")
        }
        if row.failures > 0 { parts.append("\(Quantity.grouped(row.failures, "call")) failed") }
        if row.misses > 0, row.workload != .churn {
            parts.append("\(Quantity.grouped(row.misses, "miss", "misses")) of keys that have a value")
        }
        if parts.isEmpty { return "" }
        let size = row.valueBytes.map { " " + Quantity.text(bytes: Int64($0)) } ?? ""
        return "\(row.workload.rawValue)\(size): " + parts.joined(separator: ", ") + "\n"
    }

    private static func summary(_ leftovers: BenchLeftovers) -> String {
        let found = leftovers.verification
        let reasons = RemovalReason.allCases.compactMap { reason in
            leftovers.removed[reason].map {
                "\(Quantity.grouped($0.count, "file")) (\(CollectCommand.words(reason)))"
            }
        }
        let sweep = reasons.isEmpty ? "nothing" : reasons.joined(separator: ", ")
        let kept = """
            \(Quantity.grouped(found.entries, "entry", "entries")), \
            \(Quantity.grouped(found.objects, "object"))
            """

        let state =
            leftovers.isClean
            ? "clean: \(kept), nothing else"
            : """
            NOT CLEAN: \(Quantity.grouped(found.corruptObjectCount, "corrupt object")), \
            \(Quantity.grouped(found.corruptEntryCount, "corrupt entry", "corrupt entries")), \
            \(Quantity.grouped(found.danglingEntryCount, "dangling entry", "dangling entries")), \
            \(Quantity.grouped(found.orphans ?? 0, "object")) with no key, \
            \(Quantity.grouped(leftovers.temporaries, "temporary file")), \
            \(Quantity.grouped(found.unrecognised.count, "unknown file"))
            """
        return "at the end one sweep removed \(sweep); then \(state)\n"
    }

    private static func list(_ title: String, _ lines: [String]) -> String {
        // The first ones tell what there is to know.
        lines.prefix(10).map { "\(title): \($0)\n" }.joined()
            + (lines.count > 10 ? "… and \(lines.count - 10) more\n" : "")
    }

    private static func micros(_ value: Double?) -> String {
        guard let value else { return "-" }
        if value >= 100 { return Quantity.grouped(Int(value.rounded())) }
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
