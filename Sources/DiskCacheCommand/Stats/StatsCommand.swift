// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// `diskcache stats`.
enum StatsCommand: Command {
    static let name = "stats"
    static let summary = "show what the cache holds, and the activity of all processes"
    static let optionList = """
        -q, --quick  show only the counts of all processes, without scanning the directory
        -w, --watch[=SPAN]  like --quick with rates, every SPAN (default 1s), until a signal ends it
        --prometheus  print Prometheus metrics, e.g. for node_exporter's textfile collector
        --reset  reset the counts of all processes to 0
        --prefix TEXT  show only the number and size of the keys that begin with TEXT
        \(Option.json)
        """
    // Prometheus text and JSON are alternative output formats.
    static let exclusive = [["quick", "watch", "prometheus", "reset", "prefix"], ["prometheus", "json"]]
    static let details = """
        stats scans the directory to count its contents. Sizes are those on disk; "length of all values"
        counts a value once for each key that shares it. All processes add up their counts in the directory's
        control file, which also keeps those of ended processes; --quick, --watch and --prometheus read
        nothing else. Without a scan, the number of keys and bytes is an estimate that the processes add up,
        and that each gc corrects.

        The hit ratio is the share of gets that found something. A call that computes a missing value looks it
        up twice first.

        --prefix also reads every entry. A value counts even if other keys share it.

        On a terminal, --watch redraws the screen. Otherwise it prints a line after each interval: rates per
        second, bytes unscaled, "-" as the hit ratio if there was no get; with --json, an object. SIGINT or
        SIGTERM ends it.

        JSON: path; entries, entryBytes, expiredEntries, unreadableEntries (metadata missing or damaged:
        see verify), objects, objectBytes, bytes (of both), overheadBytes (of directories and the cache's own
        files; added to bytes, what du shows), logicalBytes, oldestAccess (of the next value to be evicted,
        if any); --quick and --watch omit all these but path; totals (of all processes: since;
        \(StatsCounter.help));
        usage (as added up: entries, bytes, overheadBytes: of directories and the cache's own files, isCounted);
        limits (as in `config --json`); evictionAgeSeconds (how long the value last evicted for space had not
        been used), isBelowWorkingSet (whether larger limits would avoid many misses); lastCollection (as in
        `gc --last --json`);
        \(CacheActivity.Remote.help).
        With --watch also time, seconds (of the interval), hitRatio (in it), and perSecond: hits, misses,
        puts, removals, bytesRead, bytesWritten, computations, waits, collected. With --reset: path, reset,
        totals (until then). With --prefix: path, prefix, entries, entryBytes, expiredEntries, objects,
        objectBytes, bytes, logicalBytes, oldestAccess.

        Exit status: 0 done; 64 usage; 73 not a directory; 77 permission; 78 not a cache, or no control file.

        Examples:
          diskcache stats --json
          diskcache stats --watch=5s
          diskcache stats --prometheus > cache.prom.new && mv cache.prom.new cache.prom
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let interval = try arguments.value("watch", as: interval)
        let prefix = try SelectionOptions.prefix(arguments)
        // The servers and their state are known only in `diskcache-net`.
        arguments.shareIfConfigured()
        if let interval { try StatsWatch.run(arguments, every: interval) }
        let cache = try arguments.requireCache(sharing: true)
        if arguments.has("prometheus") {
            let reading = try StatsReading(of: cache)
            let directory = cache.path
            let metrics = Exposition(reading.totals, reading.last, reading.remote, directory: directory)
            try Output.print(metrics.text)
        } else if arguments.has("reset") {
            try reset(cache, arguments)
        } else if let prefix {
            let part = try cache.directory.statistics(.prefix(prefix))
            try arguments.print(
                StatsText.part(part, now: .now),
                json: JSON.Object(["path": cache.path, "prefix": prefix] as JSON.Object, part.partJSON)
            )
        } else if arguments.has("quick") {
            let reading = try StatsReading(of: cache)
            try arguments.print(StatsText.counts(reading, now: .now), json: reading.json())
        } else {
            let statistics = try cache.directory.statistics()
            let remote = cache.directory.remote
            let common: JSON.Object = [
                "path": cache.path, "lastCollection": statistics.lastCollection?.json,
                "remote": remote?.json,
            ]
            try arguments.print(
                StatsText.everything(cache.path, statistics, remote, now: .now),
                json: JSON.Object(common, statistics.json, statistics.totals?.json ?? [:])
            )
        }
        return .done
    }

    private static func reset(_ cache: SharedCache, _ arguments: Arguments) throws {
        let before = try StatsReading(of: cache).totals
        guard try cache.directory.resetTotals() else {
            throw Failure(
                .permission,
                "reset the counts of \(cache.path): this process can't write them: run `diskcache doctor`"
            )
        }
        let span = StatsText.span(before.since, now: .now)
        let description: JSON.Object = ["path": cache.path, "reset": true, "totals": before.counts]
        try arguments.print("all counts are reset to 0; they had counted \(span)\n", json: description)
    }

    /// Parses the interval; an empty text means one second, as with vmstat(8).
    static func interval(_ text: String) throws(Failure) -> Duration {
        if text.isEmpty { return .seconds(1) }
        let span = try Quantity.duration(text)
        // More frequent output would be unreadable, and would load the machine.
        if span < .milliseconds(100) { throw .usage("\(text) is too short: the minimum is 100ms") }
        return span
    }
}
