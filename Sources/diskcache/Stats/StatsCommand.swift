// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// `diskcache stats`.
enum StatsCommand: Command {
    static let name = "stats"
    static let operands = ""
    static let summary = "count what the cache holds, and what all processes did with it"
    static let options = [
        Option("quick", "q", help: "only what the processes have counted: no walk through the directory"),
        Option(
            "watch",
            "w",
            "SPAN",
            isValueOptional: true,
            help: "the same again and again, with rates, every second or SPAN"
        ),
        Option("prometheus", help: "print it as Prometheus reads it, for node_exporter's textfile collector"),
        Option("reset", help: "set what the processes have counted to 0"),
        .json,
    ]
    static let details = """
        What the cache holds is counted by a walk through the directory. Sizes are those on disk; the length of
        all values counts one that several keys share each time. What was done with it all processes add up as
        they go, dead ones included, in the directory's control file; --quick, --watch and --prometheus read
        nothing else. Without a walk, keys and bytes are as the processes have added them up: an estimate that
        each gc corrects.

        The hit ratio is the share of gets that found something. Computing looks twice before it begins.

        --watch redraws the screen of a terminal. Else it prints a line after each interval: rates per second,
        bytes not scaled, "-" where there was no get; with --json an object. It ends by SIGINT or SIGTERM.

        JSON: path; entries, entryBytes, expiredEntries, unreadableEntries (whose metadata is missing or
        damaged: see verify), objects, objectBytes, bytes (of both), overheadBytes (of directories and the
        cache's own files; with bytes what du shows), logicalBytes, oldestAccess (of the next value to go
        when space runs short; left out where there is none), these not with --quick and --watch; totals (of
        all processes: since; memoryHits, diskHits, staleHits, misses, hitRatio, puts, removals, bytesRead,
        bytesWritten; roomWaits, roomFailures, youngEvictions (used within 10 minutes before), ghostMisses
        (of keys evicted shortly before, as estimated from a sample); computations, waits, refreshes,
        computeFailures, cacheFailures; corruptions, danglingEntries, unnotedAccesses, unrepairedDamage,
        publishFailures, controlFailures; sweeps, swept by reason, leftMemory by cause); usage (as added up:
        entries, bytes, overheadBytes: of directories and the cache's own files, isCounted); limits (as
        `config`); evictionAgeSeconds (for how long what was evicted last for want of room had not been
        used), isBelowWorkingSet (whether larger limits would save many misses); lastSweep (as `gc --last`).
        With --watch also time, seconds (of the interval), hitRatio (in it), and perSecond: hits, misses,
        puts, removals, bytesRead, bytesWritten, computations, waits, swept. With --reset: path, reset,
        totals (until then).

        Exit status: 0 done; 64 usage; 73 DIR is no directory; 77 permission; 78 there is no cache, or no
        control file.

        Examples:
          diskcache stats --json
          diskcache stats --watch=5s
          diskcache stats --prometheus > cache.prom.new && mv cache.prom.new cache.prom
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let arguments = arguments.takingOperand(for: "watch")
        try arguments.expectOperands(0...0, "no KEY")
        let order = try StatsOrder(arguments)
        if case .watch(let interval) = order.subject {
            try StatsWatch(arguments, interval: interval, isJSON: order.isJSON).run()
        }
        let cache = try arguments.requireCache()
        switch order.subject {
        case .everything: try Output.print(everything(of: cache, order))
        case .counts, .watch: try Output.print(counts(of: cache, order))
        case .exposition:
            let path = try Exposition.label(forPath: cache.path)
            let exposition = Exposition(try totals(of: cache), try cache.lastSweep(), directory: path)
            try Output.print(exposition.text)
        case .reset: try Output.print(reset(cache, order))
        }
        return .done
    }

    /// What all processes counted.
    static func totals(of cache: SharedCache) throws -> CacheTotals {
        if let totals = try cache.totals() { return totals }
        throw Failure(
            .configuration,
            "read the counts of \(cache.path): there is no control file: see `diskcache doctor`"
        )
    }

    private static func everything(of cache: SharedCache, _ order: StatsOrder) throws -> String {
        let statistics = try cache.statistics()
        if order.isJSON { return try JSON.line(StatsDescription(path: cache.path, statistics)) }
        var text = "\(cache.path.escaped)\n" + StatsText.contents(statistics, now: .now)
        if let totals = statistics.totals {
            text += StatsText.limits(totals) + "\n" + StatsText.totals(totals, now: .now)
            text += StatsText.advice(totals.activity)
        } else {
            text += "\nno control file: what processes do is not added up; see `diskcache doctor`\n"
        }
        return text + "\n" + StatsText.lastSweep(statistics.lastSweep, now: .now)
    }

    private static func counts(of cache: SharedCache, _ order: StatsOrder) throws -> String {
        let (totals, last) = (try totals(of: cache), try cache.lastSweep())
        if order.isJSON { return try JSON.line(StatsDescription(path: cache.path, totals, last)) }
        return "\(cache.path.escaped)\n" + StatsText.usage(totals.usage)
            + StatsText.limits(totals) + "\n" + StatsText.totals(totals, now: .now)
            + StatsText.advice(totals.activity) + "\n" + StatsText.lastSweep(last, now: .now)
    }

    private static func reset(_ cache: SharedCache, _ order: StatsOrder) throws -> String {
        let before = try totals(of: cache)
        guard try cache.resetTotals() else {
            throw Failure(
                .permission,
                "reset the counts of \(cache.path): this process can't write them: see `diskcache doctor`"
            )
        }
        if order.isJSON {
            var description = StatsDescription(path: cache.path)
            (description.reset, description.totals) = (true, .init(before))
            return try JSON.line(description)
        }
        return "all counts are 0 from now on; they had counted \(StatsText.span(before.since, now: .now))\n"
    }
}
