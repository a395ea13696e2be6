// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache gc`.
enum CollectCommand: Command {
    static let name = "gc"
    static let summary = "remove expired values and leftovers, and evict what exceeds the limits"
    static let optionList = """
        -s, --max-size SIZE  evict least recently used values until du shows at most SIZE: 512M
        -n, --max-entries COUNT  evict least recently used values until at most COUNT keys are left
        --max-age SPAN  remove values stored more than SPAN ago: 30d
        --max-idle SPAN  remove values last used more than SPAN ago: 7d
        --min-free SPACE  evict values until SPACE of the disk is free: 10%, 2G
        --expired-only  remove only expired values and reclaim their space
        --prefix TEXT  remove only keys that begin with TEXT; the limits still count all keys
        --dry-run  show what would be removed, and remove nothing
        --list  also list the keys that are removed, or would be
        --last  show what the last collection by any process did, and collect nothing
        --nice  use only a fifth of one processor
        --verify  afterward read and hash every value, as `diskcache verify` does
        --wait[=SPAN]  wait up to SPAN while another process collects
        --no-wait  fail at once if another process is collecting (default: wait a minute)
        -w, --watch SPAN  collect every SPAN, as a daemon, until a signal ends it
        \(Option.json)
        """
    static var exclusive: [[String]] {
        let limits = ["max-size", "max-entries", "max-age", "max-idle", "min-free"]
        let others = options.map(\.specification.name).filter { $0 != "last" && $0 != "json" }
        return [["wait", "no-wait"], ["watch", "wait"], ["watch", "verify"], ["watch", "list"]]
            + limits.map { ["expired-only", $0] }
            + others.map { ["last", $0] }
    }
    static let details = """
        Runs one collection. Other processes can read and write meanwhile; none of them waits for it. It
        always removes expired values, entries whose value is gone or whose metadata is damaged, values
        without a key, and what killed processes have left behind. It also evicts what exceeds the directory's
        own limits (`diskcache config`); a limit given here replaces the directory's for this collection.
        Sizes are those on disk; about 5 MiB are reserved for the cache's own files. An access is recorded at
        most once in 225 s, or more often if limits evict sooner: of values used within that time of each
        other, any may be evicted first. With --prefix, all other keys stay, whatever the limits are.

        One process collects at a time. If that process is stopped, gc waits for it only with --wait; --wait
        without SPAN has no limit. --watch does not wait: if another process is collecting, it skips that
        turn. It prints a line for each collection, or with --json an object that includes time; it reports
        errors on standard error, and continues. SIGTERM and SIGINT end it cleanly, even in the middle of a
        collection, which the next one then completes; a second signal ends it at once.

        --list prints a line for each key that is removed, or would be with --dry-run: the reason and the key,
        or sha256: and the digest of a key stored only as a digest; with --json, an object with reason,
        keyDigest and key. Values without a key are not listed.

        The reason cleared means: removed by `diskcache clear`, by `diskcache rm` with an option, or by a
        program.

        JSON: removed (by reason: staleTemporary, expired, cleared, dangling, corrupt, orphan, age, idle,
        entries, size, freeSpace; each with count and bytes; reasons that don't occur are omitted),
        removedBytes, entries and objects (what is left: count, bytes), spared (in use or changed meanwhile),
        skippedStripes (locks held by stopped processes; the files under these locks were skipped),
        unrecognised (files that are not part of the cache), unreadable (files and directories that could not
        be read or removed, and were skipped), isDryRun, isComplete, seconds, verify (with --verify: as in
        `diskcache verify`). With --last: process, began, ended (omitted while it runs, or if it was killed),
        seconds, workedSeconds (without pauses), expiredOnly, isComplete, removed, removedBytes, entries,
        objects, drift (by how much the processes' own counts exceeded the counted usage), lastFull (when the
        last full collection began).

        Exit status: 0 done, even if nothing was removed, or a signal ended --watch; 1 with --last: there was
        no collection yet; 64 usage; 65 --verify found damage; 73 not a directory, or a read-only file system;
        75 timed out waiting for another collection; 77 permission; 78 not a cache.

        Examples:
          diskcache gc --max-size 2G --max-idle 30d
          diskcache gc --expired-only --no-wait --json
          diskcache gc --watch 15m --nice --max-size 2G
          diskcache gc --dry-run --list --max-idle 30d
          diskcache gc --last
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        if arguments.has("last") {
            guard let last = try arguments.requireCache().directory.lastCollection() else { return .miss }
            try arguments.print(LastCollectionText.text(last, now: .now), json: last.json)
            return .done
        }
        let request = try request(arguments)
        if let interval = try arguments.value("watch", as: Quantity.duration) {
            guard interval > .zero else {
                throw Failure.usage("gc: --watch: the interval must be more than 0: write it like 15m")
            }
            try CollectWatch.run(arguments, request, every: interval)
            return .done
        }
        let cache = try arguments.requireCache()
        let isJSON = arguments.has("json")
        let list = arguments.has("list") ? CollectList(isJSON: isJSON) : nil
        let (report, seconds) = try collect(cache, request, insists: arguments.has("wait"), list: list)
        var found: VerifyReport?
        if !isJSON { try Output.print(text(report)) }
        if arguments.has("verify") { found = try VerifyCommand.verify(cache, .init(), isJSON: isJSON) }
        if isJSON { try Output.print(JSON.line(report.json(seconds: seconds, verify: found))) }
        return found?.isClean ?? true ? .done : .dataError
    }

    /// Collects once, with progress on a terminal; returns the report and the duration in seconds.
    ///
    /// If another process is collecting, it waits in attempts of one second until the patience is exhausted, and shows
    /// that process between attempts. If an attempt ends early, the other process makes no progress, for instance because
    /// it is stopped; only if the user `insists` are further attempts made.
    ///
    /// - Parameter list: Prints the keys that are removed.
    static func collect(
        _ cache: SharedCache,
        _ request: CollectionOptions,
        insists: Bool,
        list: CollectList? = nil
    ) throws -> (report: CollectionReport, seconds: Double) {
        let start = ContinuousClock.now
        let report = try ProgressLine.during { line -> CollectionReport in
            // Prints the keys that were found before a failure, too.
            defer { list?.show(above: line) }
            while true {
                let begin = ContinuousClock.now
                var attempt = request
                if let list { attempt.onRemoval = { list.add($0) } }
                attempt.patience = max(.zero, min(request.patience - (begin - start), .seconds(1)))
                do throws(CacheError) {
                    return try cache.directory.collect(attempt) { progress in
                        list?.show(above: line)
                        line.show(progress)
                    }
                } catch {
                    let unused = .seconds(1) - (ContinuousClock.now - begin)
                    let left = request.patience - (ContinuousClock.now - start)
                    guard error.code == .busy, left > .zero, insists || unused <= .zero else { throw error }
                    line.show(error.message)
                    if unused > .zero { sleepThread(for: min(unused, left)) }
                }
            }
        }
        try list?.check()
        return (report, (ContinuousClock.now - start).inSeconds)
    }

    static func request(_ arguments: Arguments) throws(Failure) -> CollectionOptions {
        var request = CollectionOptions()
        if let prefix = try SelectionOptions.prefix(arguments) { request.selection = .prefix(prefix) }
        request.maximumSize = try arguments.value("max-size", as: Quantity.size)
        request.maximumEntries = try arguments.value("max-entries", as: Quantity.count)
        request.maximumAge = try arguments.value("max-age", as: Quantity.duration)
        request.maximumIdleTime = try arguments.value("max-idle", as: Quantity.duration)
        request.minimumFree = try arguments.value("min-free", as: Quantity.freeSpace)
        request.expiredOnly = arguments.has("expired-only")
        request.isDryRun = arguments.has("dry-run")
        request.pace = arguments.has("nice") ? .sparing : .full
        if arguments.has("no-wait") { request.patience = .zero }
        if arguments.value("wait") == "" {
            // Practically no limit.
            request.patience = .seconds(9e9)
        } else if let patience = try arguments.value("wait", as: Quantity.duration) {
            request.patience = patience
        }
        return request
    }

    // MARK: Text

    static func text(_ report: CollectionReport) -> String {
        let left = CollectionText.words(left: report.entries, report.objects)
        if report.removed.isEmpty { return "nothing to do: \(left)\n" + notes(report) }
        return CollectionText.table(report.removed, heading: report.isDryRun ? "WOULD REMOVE" : "REMOVED")
            + "\(report.isDryRun ? "would remain" : "left"): \(left)\n" + notes(report)
    }

    static func notes(_ report: CollectionReport) -> String {
        var notes = ""
        if report.spared > 0 { notes += "spared (in use or changed meanwhile): \(report.spared)\n" }
        let stripes = report.skippedStripes.joined(separator: ", ")
        if !stripes.isEmpty { notes += "skipped (locked by stopped processes): \(stripes)\n" }
        notes += report.unreadable.map { "skipped (can't be read or removed): \($0.escaped)\n" }.joined()
        return notes + report.unrecognised.map { "skipped (not part of the cache): \($0.escaped)\n" }.joined()
    }
}

extension CollectionReport {
    /// Returns the report as JSON, with additional fields.
    func json(seconds: Double, time: Date? = nil, verify: VerifyReport? = nil) -> JSON.Object {
        let rest: JSON.Object = [
            "removedBytes": removedBytes, "seconds": seconds, "time": time, "verify": verify,
        ]
        return JSON.Object(self, rest)
    }
}
