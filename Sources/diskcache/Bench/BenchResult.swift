// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// One row of a benchmark: a workload with values of one size.
///
/// Its fields are named as `--json` prints them.
struct BenchRow: Codable, Sendable {
    let workload: BenchTask
    /// Length of the values; nil for a corpus, whose values have their own.
    let valueBytes: Int?
    let workers: Int
    let seconds: Double
    let operations: Int
    let operationsPerSecond: Double
    let getP50Microseconds: Double?
    let getP99Microseconds: Double?
    let putP50Microseconds: Double?
    let putP99Microseconds: Double?
    let hits: Int
    /// Of keys that all have a value: there should be none.
    let misses: Int
    let wrong: Int
    let failures: Int
    let bytesRead: Int64
    let bytesWritten: Int64
    let kills: Int
    let sweeps: Int
    let swept: Int
    /// Whether it ended early, because it had written as much as it may.
    let isCut: Bool

    init(_ result: CrewResult, workload: BenchTask, valueBytes: Int?, workers: Int) {
        let report = result.report
        self.workload = workload
        self.valueBytes = valueBytes
        self.workers = workers
        isCut = report.cuts > 0
        seconds = result.elapsed / .seconds(1)
        operations = report.operations
        operationsPerSecond = seconds > 0 ? Double(operations) / seconds : 0
        getP50Microseconds = report.gets.microseconds(atShare: 0.5)
        getP99Microseconds = report.gets.microseconds(atShare: 0.99)
        putP50Microseconds = report.puts.microseconds(atShare: 0.5)
        putP99Microseconds = report.puts.microseconds(atShare: 0.99)
        hits = report.hits
        misses = report.misses
        wrong = result.wrong
        failures = report.failures
        bytesRead = report.bytesRead
        bytesWritten = report.bytesWritten
        kills = result.kills
        sweeps = result.collector.sweeps
        swept = result.collector.removed
    }
}

/// What is in the directory at the end, after one collection, with nobody working on it.
struct BenchLeftovers: Codable, Sendable {
    /// What that collection removed, by reason: after kills, and where values were replaced, this is
    /// something.
    let removed: [RemovalReason: Tally]
    /// Keys and distinct values that are left, re-read and hashed anew.
    let verification: VerifyReport
    /// Files in `tmp`.
    let temporaries: Int

    /// Whether nothing is there but entries and their objects.
    var isClean: Bool {
        verification.isClean && verification.orphans == 0 && verification.unrecognised.isEmpty
            && temporaries == 0
    }
}

/// All of it, as `--json` prints it.
struct BenchResult: Codable, Sendable {
    var directory: String
    var rows: [BenchRow] = []
    var wrongValues: [String] = []
    var failures: [String] = []
    var crashes: [String] = []
    var notes: [String] = []
    var leftovers: BenchLeftovers?

    var wrong: Int { rows.reduce(0) { $0 + $1.wrong } }

    /// Wrong bytes before all, then what kept it from telling.
    var status: ExitStatus {
        if wrong > 0 || !wrongValues.isEmpty || !(leftovers?.isClean ?? true) { return .dataError }
        if !crashes.isEmpty { return .internal }
        return failures.isEmpty && !rows.contains { $0.failures > 0 } ? .done : .inputOutput
    }
}
