// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// The result of a benchmark.
struct BenchResult {
    let plan: BenchPlan
    let report: BenchReport
    let seconds: Double
    let kills: Int
    /// Descriptions of workers that ended abnormally.
    let crashes: [String]
    let leftovers: BenchLeftovers

    var operationsPerSecond: Double { Double(report.operations) / seconds }

    /// The exit status: wrong bytes take precedence over problems that may have hidden wrong bytes.
    var status: ExitStatus {
        if report.counts.wrong > 0 || !leftovers.isClean { return .dataError }
        return !crashes.isEmpty ? .internal : report.counts.failures > 0 ? .inputOutput : .done
    }

    var json: JSON.Object {
        func calls(_ histogram: LatencyHistogram) -> JSON.Object {
            [
                "count": histogram.count, "perSecond": Double(histogram.count) / seconds,
                "medianMicroseconds": histogram.microseconds(atShare: 0.5),
                "p99Microseconds": histogram.microseconds(atShare: 0.99),
            ]
        }
        return [
            "plan": plan, "seconds": seconds, "operationsPerSecond": operationsPerSecond,
            "gets": calls(report.gets), "puts": calls(report.puts), "counts": report.counts, "kills": kills,
            "crashes": crashes, "leftovers": leftovers,
        ]
    }

    // MARK: Text

    var text: String {
        var table = Table(.left, .right, .right, .right, .right)
        table.add("", "COUNT", "PER SECOND", "MEDIAN µs", "P99 µs")
        for (name, calls) in [("gets", report.gets), ("puts", report.puts)] where calls.count > 0 {
            table.add(
                name,
                Quantity.grouped(calls.count),
                Quantity.grouped(Int(Double(calls.count) / seconds)),
                Quantity.text(microseconds: calls.microseconds(atShare: 0.5)),
                Quantity.text(microseconds: calls.microseconds(atShare: 0.99))
            )
        }
        let rate = Quantity.grouped(Int(operationsPerSecond))
        let isCut = report.counts.bytesWritten >= BenchPlan.writeLimit
        let most = Quantity.text(bytes: Int64(BenchPlan.writeLimit))
        let problems = report.counts.problems + crashes.map { "crashed: \($0)" }
        return """
            \(Quantity.grouped(plan.workers, "process", "processes")), \(Quantity.grouped(plan.keys, "key")), values of \(Quantity.text(bytes: Int64(plan.size))): \
            \(rate) operations/s in \(Quantity.tenths(seconds)) s
            \(isCut ? "stopped early, after writing \(most)\n" : "")\(table.text)\(countsText)
            \(CollectCommand.text(leftovers.collection))\(VerifyCommand.text(leftovers.verify, VerifyOptions()))\
            \(leftovers.temporaries > 0 ? "left in tmp: \(leftovers.temporaries)\n" : "")\
            \(problems.prefix(10).map { $0 + "\n" }.joined())
            """
    }

    private var countsText: String {
        let counts = report.counts
        var parts = [
            ("hits", report.gets.count - counts.misses), ("misses", counts.misses), ("wrong", counts.wrong),
            ("failed", counts.failures),
        ]
        let others = [("removals", counts.removals), ("kills", kills), ("collections", counts.collections)]
        parts += others.filter { $0.1 > 0 }
        return parts.map { "\($0.0) \(Quantity.grouped($0.1))" }.joined(separator: ", ")
            + "; read \(Quantity.text(bytes: Int64(counts.bytesRead)))"
            + ", written \(Quantity.text(bytes: Int64(counts.bytesWritten)))"
    }
}

/// The contents of the directory after the workers have ended and a collection was made.
struct BenchLeftovers: Encodable {
    /// The collection, which removes replaced values and leftovers of killed workers.
    let collection: CollectionReport
    /// The remaining keys and values, all read and hashed.
    let verify: VerifyReport
    /// The number of files in `tmp`.
    let temporaries: Int

    init(in cache: SharedCache) throws {
        collection = try cache.directory.collect()
        verify = try cache.directory.verify()
        // The directory may be missing: it is created on first use.
        temporaries = (try? Directory(opening: cache.path + "/tmp").names().count) ?? 0
    }

    /// Whether only intact entries and their objects are left.
    var isClean: Bool {
        verify.isClean && verify.orphans == 0 && verify.unrecognised.isEmpty && temporaries == 0
    }
}

extension Quantity {
    /// "0.5", "12.3", "1 234"; "-" for nil.
    static func text(microseconds: Double?) -> String {
        guard let microseconds else { return "-" }
        if microseconds >= 100 { return grouped(Int(microseconds.rounded())) }
        return tenths(microseconds)
    }
}
