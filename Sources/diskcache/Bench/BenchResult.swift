// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// What a benchmark has found.
struct BenchResult {
    let plan: BenchPlan
    let report: BenchReport
    let seconds: Double
    let kills: Int
    /// Workers that ended otherwise than they should.
    let crashes: [String]
    let leftovers: BenchLeftovers

    var operationsPerSecond: Double { Double(report.operations) / seconds }

    /// Wrong bytes before all, then what kept it from telling.
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
        let isCut = report.counts.bytesWritten >= Bench.writeLimit
        let problems = report.counts.problems + crashes.map { "crashed: \($0)" }
        return """
            \(Quantity.grouped(plan.workers, "process", "processes")), \(Quantity.grouped(plan.keys, "key")), values of \(Quantity.text(bytes: Int64(plan.size))): \
            \(rate) operations/s in \(Quantity.tenths(seconds)) s
            \(isCut ? "ended early, having written as much as it may\n" : "")\(table.text)\(countsText)
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

/// What is in the directory after one collection, with nobody working on it.
struct BenchLeftovers: Encodable {
    /// The collection: after kills, and where values were replaced, it removes something.
    let collection: CollectionReport
    /// Keys and distinct values that are left, re-read and hashed anew.
    let verify: VerifyReport
    /// Files in `tmp`.
    let temporaries: Int

    init(in cache: SharedCache) throws {
        collection = try cache.collect()
        verify = try cache.verify()
        // It is made only where it is needed.
        temporaries = (try? Directory(opening: cache.path + "/tmp").names().count) ?? 0
    }

    /// Whether nothing is there but entries and their objects.
    var isClean: Bool {
        verify.isClean && verify.orphans == 0 && verify.unrecognised.isEmpty && temporaries == 0
    }
}

extension Quantity {
    /// "0.5", "12.3", "1 234"; "-" where there is none.
    static func text(microseconds: Double?) -> String {
        guard let microseconds else { return "-" }
        if microseconds >= 100 { return grouped(Int(microseconds.rounded())) }
        return tenths(microseconds)
    }
}
