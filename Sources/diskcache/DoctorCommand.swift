// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// `diskcache doctor`.
enum DoctorCommand: Command {
    static let name = "doctor"
    static let operands = ""
    static let summary = "say what the directory can do, and what is risky about it"
    static let options = [
        Option("bench", "b", help: "measure the directory's file system, too: a second or two"), .json,
    ]
    static let details = """
        Looks at the directory, its owner and permissions, the file system, the kernel, room and limits, locks,
        clocks, collections and other versions; not at the contents: `diskcache verify` does. A fallback works,
        at a price; a risk is something to do.

        --bench puts, gets and collects 1000 values of 4 KiB in a cache of its own, in the directory's tmp, and
        removes it again, also after Ctrl-C; for a second it takes some 16 MiB. The cache itself is left alone.
        A median above what is usual is marked as slow: the medium is, or others keep it busy.

        JSON: path, findings (each with subject, level: fine, fallback or risk, state, and advice where there
        is any); with --bench: bench (each with operation, count, perSecond, medianMicroseconds,
        p99Microseconds, usualMicroseconds: from, to).

        Exit status: 0 nothing to do; 64 usage; 73 DIR is no directory; 77 permission; 78 a risk was found, or
        there is no cache.

        Examples:
          diskcache doctor
          diskcache doctor --bench --json
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...0, "no KEY")
        // Opening the cache replaces what another version has left there.
        let version = ControlVersion.foreign(in: try arguments.directory())
        let cache = try arguments.requireCache()
        var facts = try cache.facts()
        facts.replacedControlVersion = version
        let findings = facts.findings
        let rows =
            arguments.has("bench") ? try bench(cache, room: facts.space.availableBytes, arguments) : nil
        if arguments.has("json") {
            try Output.print(JSON.line(Description(path: cache.path, findings: findings, bench: rows)))
        } else {
            let table = rows.map { "\n" + DirectoryBench.text($0) } ?? ""
            try Output.print("\(cache.path.escaped)\n" + text(findings) + table)
        }
        return findings.contains { $0.level == .risk } ? .configuration : .done
    }

    private static func bench(
        _ cache: SharedCache,
        room: Int64,
        _ arguments: Arguments
    ) throws -> [DirectoryBench.Row] {
        guard room >= DirectoryBench.room else {
            throw Failure(
                .cannotCreate,
                "doctor: measure \(cache.path): less than 64 MiB are free: free some first"
            )
        }
        // First, so that no signal can come between the making of the directory and its removal.
        let signals = try HeldSignals([.hangup, .interrupt, .terminate])
        let directory = try BenchDirectory(near: cache.path + "/tmp")
        let outcome = Result {
            try DirectoryBench.measure(at: directory.path, arguments.configuration())
        }
        try directory.remove()
        if let received = signals.next() { CurrentProcess.end(like: received.signal) }
        return try outcome.get()
    }

    static func text(_ findings: [Finding]) -> String {
        var table = Table(.left, .left, .left)
        for finding in findings {
            let level =
                switch finding.level {
                case .fine: "ok"
                case .fallback: "fallback"
                case .risk: "RISK"
                }
            table.add(level, finding.subject, finding.state.singleLine)
            if let advice = finding.advice { table.add("", "", advice.singleLine) }
        }
        return table.text
    }

    private struct Description: Encodable {
        let path: String
        let findings: [Finding]
        let bench: [DirectoryBench.Row]?
    }
}
