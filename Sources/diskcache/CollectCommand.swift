// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache gc`.
enum CollectCommand: Command {
    static let name = "gc"
    static let operands = ""
    static let summary = "remove expired values, leftovers, and what is over the limits"
    static let options = [
        Option(
            "max-size",
            "s",
            "SIZE",
            help: "trim the directory to this, as du shows it, least recently used first: 512M"
        ),
        Option("max-entries", "n", "COUNT", help: "trim to so many keys, least recently used first"),
        Option("max-age", nil, "SPAN", help: "remove what was stored longer ago: 30d"),
        Option("max-idle", nil, "SPAN", help: "remove what was used longer ago: 7d"),
        Option("min-free", nil, "SPACE", help: "trim until so much of the disk is free: 10%, 2G"),
        Option("expired-only", help: "only expired values, with their space"),
        Option("dry-run", help: "decide everything and remove nothing"),
        Option("last", help: "sweep nothing, say what the last sweep of any process did"),
        Option("nice", help: "use a fifth of one processor"),
        Option("verify", help: "then read and hash every value, as `diskcache verify`"),
        Option(
            "wait",
            nil,
            "SPAN",
            isValueOptional: true,
            help: "wait so long while another process does it"
        ),
        Option("no-wait", help: "fail at once while another process does it (else wait a minute)"),
        Option("watch", "w", "SPAN", help: "sweep every SPAN until a signal ends it: for a daemon"),
        .json,
    ]
    static let details = """
        One sweep, safe beside readers and writers, none of which waits for it. It always removes expired
        values, entries whose value is gone or whose metadata is damaged, values that no key names, and
        what killed processes have left. Sizes are those on disk. What is over the directory's
        own limits (`diskcache config`) goes too; a limit given here takes the place of the directory's for
        this once. An access is noted once in 225 s at most, sooner where limits evict sooner: of values used
        within that time of each other, those that were stored first go first.

        One process sweeps at a time. A stopped one is waited for only with --wait; without SPAN that waits as
        long as it takes. --watch waits for nobody, but leaves that turn to who is at it. It prints a line a
        sweep, with --json an object with time; what fails goes to standard error, and it goes on. SIGTERM and
        SIGINT end it cleanly, also in the middle of a sweep, which the next one then completes; a second one
        ends it at once.

        JSON: removed (by reason: staleTemporary, expired, dangling, corrupt, orphan, age, idle, entries,
        size, freeSpace; each with count and bytes; what does not occur is left out), removedBytes, entries
        and objects (what is left: count, bytes), spared (in use or changed meanwhile), skippedStripes (locks
        of stopped processes: what they guard was left alone), unrecognised (files that are not ours),
        unreadable (files and directories that the system would not have read or removed: they were left
        alone), isDryRun, isComplete, seconds, verify (with --verify: as `diskcache verify` prints it). With
        --last: process, began, ended (left out: it is under way, or was killed), seconds, workedSeconds
        (without its rests), expiredOnly, isComplete, removed, removedBytes, entries, objects, drift (by how
        much more than there was the processes had added up), lastFull (when the last full one began).

        Exit status: 0 done, also where there was nothing to do, and --watch that was ended; 1 with --last
        where there was none yet; 64 usage; 65 --verify found damage; 73 DIR is no directory, or a read-only
        file system; 75 another process does it and did not end in time; 77 permission; 78 there is no cache.

        Examples:
          diskcache gc --max-size 2G --max-idle 30d
          diskcache gc --expired-only --no-wait --json
          diskcache gc --watch 15m --nice --max-size 2G
          diskcache gc --last
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let arguments = arguments.takingOperand(for: "wait")
        try arguments.expectOperands(0...0, "no KEY")
        if arguments.has("last") { return try last(arguments) }
        let request = try request(arguments)
        if let interval = try watchInterval(arguments) {
            return try CollectWatch(arguments, request, interval: interval).run()
        }
        let cache = try arguments.requireCache()
        let (report, seconds) = try collect(cache, request, insists: arguments.has("wait"))
        var description = Description(report: report, seconds: seconds)
        let isJSON = arguments.has("json")
        if !isJSON { try Output.print(text(report)) }
        if arguments.has("verify") {
            let options = VerifyOptions()
            let found = try VerifyCommand.verify(cache, options, showsFindings: !isJSON)
            description.verify = found
            if !isJSON { try Output.print(VerifyCommand.text(found, options)) }
        }
        if isJSON { try Output.print(JSON.line(description)) }
        return description.verify?.isClean ?? true ? .done : .dataError
    }

    /// One sweep, with progress on a terminal, and the seconds that it took.
    private static func collect(
        _ cache: SharedCache,
        _ request: GarbageCollection,
        insists: Bool
    ) throws(CacheError) -> (GCReport, seconds: Double) {
        let start = ContinuousClock.now
        let report = try ProgressLine.during { (line) throws(CacheError) in
            try waiting(request.patience, insists: insists) { (patience) throws(CacheError) in
                var request = request
                request.patience = patience
                return try cache.collectGarbage(request) { line.show($0) }
            } meanwhile: { error in
                line.show(error.message)
            }
        }
        return (report, (ContinuousClock.now - start).inSeconds)
    }

    /// Tries for a second at a time until `patience` is over, so that it can be said for whom it waits.
    ///
    /// Unless the user `insists` it gives up where an attempt ends before its second is over: the process that
    /// sweeps does not get on, because it is stopped for instance.
    private static func waiting<Value>(
        _ patience: Duration,
        insists: Bool,
        _ attempt: (Duration) throws(CacheError) -> Value,
        meanwhile: (CacheError) -> Void
    ) throws(CacheError) -> Value {
        let start = ContinuousClock.now
        while true {
            let begin = ContinuousClock.now
            let rest = patience - (begin - start)
            do throws(CacheError) {
                return try attempt(max(.zero, min(rest, .seconds(1))))
            } catch {
                let unused = .seconds(1) - (ContinuousClock.now - begin)
                let left = patience - (ContinuousClock.now - start)
                guard error.code == .busy, left > .zero, insists || unused <= .zero else { throw error }
                meanwhile(error)
                if unused > .zero { sleepThread(for: min(unused, left)) }
            }
        }
    }

    /// nil: sweep once.
    private static func watchInterval(_ arguments: Arguments) throws(Failure) -> Duration? {
        guard let interval = try arguments.value("watch", as: Quantity.duration) else { return nil }
        if let other = ["wait", "verify"].first(where: arguments.has) {
            throw .usage("gc: --watch and --\(other) exclude each other: give one")
        }
        guard interval > .zero else {
            throw .usage("gc: --watch: 0 leaves no time between sweeps: write it like 15m")
        }
        return interval
    }

    /// What the last sweep of any process did.
    private static func last(_ arguments: Arguments) throws -> ExitStatus {
        if let other = options.map(\.specification.name).first(where: {
            $0 != "last" && $0 != "json" && arguments.has($0)
        }) {
            throw Failure.usage("gc: --last sweeps nothing: leave out either it or --\(other)")
        }
        guard let sweep = try arguments.requireCache().lastSweep() else { return .miss }
        try Output.print(
            arguments.has("json")
                ? JSON.line(SweepDescription(sweep)) : LastSweepText.text(sweep, now: .now)
        )
        return .done
    }

    static func request(_ arguments: Arguments) throws(Failure) -> GarbageCollection {
        var request = GarbageCollection()
        request.maximumSize = try arguments.value("max-size", as: Quantity.size)
        request.maximumEntries = try arguments.value("max-entries", as: Quantity.count)
        request.maximumAge = try arguments.value("max-age", as: Quantity.duration)
        request.maximumIdleTime = try arguments.value("max-idle", as: Quantity.duration)
        request.minimumFreeSpace = try arguments.value("min-free", as: Quantity.freeSpace)
        request.expiredOnly = arguments.has("expired-only")
        request.isDryRun = arguments.has("dry-run")
        request.pace = arguments.has("nice") ? .sparing : .full
        request.patience = try patience(arguments)
        let limits = ["max-size", "max-entries", "max-age", "max-idle", "min-free"]
        if request.expiredOnly, let limit = limits.first(where: arguments.has) {
            throw .usage("gc: --expired-only looks at no limits: leave out either it or --\(limit)")
        }
        return request
    }

    /// How long to wait while another process sweeps.
    private static func patience(_ arguments: Arguments) throws(Failure) -> Duration {
        guard arguments.has("wait") else {
            return arguments.has("no-wait") ? .zero : GarbageCollection().patience
        }
        if arguments.has("no-wait") {
            throw .usage("gc: --wait and --no-wait exclude each other: give one")
        }
        // Without a value it is empty.
        if arguments.value("wait") == "" { return .seconds(9e9) }
        return try arguments.value("wait", as: Quantity.duration) ?? .zero
    }

    /// What is printed as JSON: the library's report, and what it does not hold.
    struct Description: Encodable {
        let report: GCReport
        let seconds: Double
        var time: Date?
        var verify: VerifyReport?

        private enum Key: String, CodingKey {
            case removedBytes, seconds, time, verify
        }

        func encode(to encoder: any Encoder) throws {
            try report.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(report.removedBytes, forKey: .removedBytes)
            try container.encode(seconds, forKey: .seconds)
            try container.encodeIfPresent(time, forKey: .time)
            try container.encodeIfPresent(verify, forKey: .verify)
        }
    }

    // MARK: Text

    static func text(_ report: GCReport) -> String {
        let left = words(left: report.entries, report.objects)
        if report.removed.isEmpty { return "nothing to do: \(left)\n" + notes(report) }
        return table(report.removed, heading: report.isDryRun ? "WOULD GO" : "REMOVED")
            + "\(report.isDryRun ? "would be left" : "left"): \(left)\n" + notes(report)
    }

    /// What was removed, by reason.
    static func table(_ removed: [RemovalReason: Tally], heading: String) -> String {
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

    /// "1 key, 2 values, 12.0 KiB".
    static func words(left entries: Tally, _ objects: Tally) -> String {
        """
        \(Quantity.count(entries.count, "key")), \(Quantity.count(objects.count, "value")), \
        \(Quantity.text(bytes: entries.bytes + objects.bytes))
        """
    }

    static func words(_ reason: RemovalReason) -> String {
        switch reason {
        case .staleTemporary: "left behind"
        case .expired: "expired"
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

    private static func notes(_ report: GCReport) -> String {
        var notes = ""
        if report.spared > 0 { notes += "spared, as in use or changed meanwhile: \(report.spared)\n" }
        if !report.skippedStripes.isEmpty {
            notes += """
                left alone, as stopped processes hold their locks: \
                \(report.skippedStripes.joined(separator: ", "))

                """
        }
        notes += report.unreadable.map { "can't be read, left alone: \($0.escaped)\n" }.joined()
        return notes + report.unrecognised.map { "not ours, left alone: \($0.escaped)\n" }.joined()
    }
}
