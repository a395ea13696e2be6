// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache gc --watch`: collects at intervals, until a signal arrives.
enum CollectWatch {
    static func run(_ arguments: Arguments, _ request: CollectionOptions, every interval: Duration) throws {
        // Checked once, so that a mistake on the command line is not reported at each interval.
        _ = try arguments.directory()
        let stop = try doing("receive signals") { () throws(Errno) in
            try StopSignal([.terminate, .interrupt])
        }
        var request = request
        // If another process is collecting, it does the same work; and a signal could not interrupt the wait for it.
        request.patience = .zero
        request.isCancelled = { stop.hasArrived }
        var due = ContinuousClock.now
        repeat {
            try collect(arguments, request)
            // Counted from the previous due time, so that delays do not accumulate.
            due = max(due + interval, .now)
        } while stop.wait(until: due) == nil
    }

    /// Collects once; prints the result, or why it failed.
    private static func collect(_ arguments: Arguments, _ request: CollectionOptions) throws {
        let start = ContinuousClock.now
        let report: CollectionReport
        do {
            // Reopened each time, because the directory may have been replaced, or may not exist yet.
            report = try arguments.requireCache().directory.collect(request)
        } catch {
            return try Output.complain("\(error)")
        }
        let seconds = (ContinuousClock.now - start).inSeconds
        try arguments.print(
            line(report, seconds: seconds, now: .now),
            json: report.json(seconds: seconds, time: .now)
        )
    }

    /// Returns "2026-01-31T12:00:00Z removed 12, 48.0 KiB (expired 12); left 1 key, 1 value, 4.0 KiB; took 0.1 s".
    static func line(_ report: CollectionReport, seconds: Double, now: Date) -> String {
        let count = report.removed.values.reduce(0) { $0 + $1.count }
        let reasons = RemovalReason.allCases.compactMap { reason in
            report.removed[reason].map { "\(CollectionText.words(reason)) \($0.count)" }
        }
        let verb = report.isDryRun ? "would remove" : "removed"
        let what = count == 0 ? "nothing" : "\(count), \(Quantity.text(bytes: report.removedBytes))"
        let why = reasons.isEmpty ? "" : " (\(reasons.joined(separator: ", ")))"
        let left = CollectionText.words(left: report.entries, report.objects)
        // An incomplete collection has not counted all that is left.
        let end = report.isComplete ? "left \(left)" : "stopped early"
        let time = Quantity.tenths(seconds)
        return "\(now.formatted(.iso8601)) \(verb) \(what)\(why); \(end); took \(time) s\n"
    }
}
