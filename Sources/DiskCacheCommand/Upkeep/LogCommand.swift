// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// `diskcache log`.
enum LogCommand: Command {
    static let name = "log"
    static let operands = "[KEY]"
    static let summary = "show which process removed which key, when and why"
    static let optionList = """
        -n, --limit COUNT  show only the newest COUNT removals
        \(Option.scope)
        \(Option.json)
        """
    static let details = """
        Prints the event log of the directory, the newest removal last; with KEY, only the removals of that
        key. `diskcache config set event-log SIZE` turns the log on. When the log is full, its older half is
        dropped. A key removed by gc is shown as sha256: and its digest, because gc does not read keys; KEY
        still finds it. Replacing a value is not logged.

        Reasons: those of gc (see `diskcache gc --help`); removed (by rm KEY or a program); cleared (by clear,
        rm with an option, or a program; the gc that reclaims the space logs it); repaired (a reader or verify
        found it damaged).

        JSON: one object per line: time (UTC, ISO 8601), process, reason (staleTemporary, expired, dangling,
        corrupt, age, idle, entries, size, freeSpace, removed, cleared, repaired), keyDigest, key (if known).

        Exit status: 0 done; 1 no removal was logged, or none of KEY; 64 usage; 73 not a directory; 74 the log
        can't be read; 77 permission; 78 there is no cache.

        Examples:
          diskcache log page
          diskcache log --limit 20 --json
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let key = arguments.operands.isEmpty ? nil : try arguments.key()
        let limit = try arguments.value("limit", as: Quantity.count) ?? .max
        let cache = try arguments.requireCache()
        guard let removals = try cache.directory.removals(forKey: key, limit: limit) else {
            throw Failure(
                .miss,
                "nothing was logged in \(cache.path): if the log is off, "
                    + "`diskcache config set event-log 1M` turns it on"
            )
        }
        if removals.isEmpty { return .miss }
        try Output.toStandardOutput { output in
            for removal in removals {
                try output.write(arguments.has("json") ? JSON.line(removal.json) : line(removal))
            }
        }
        return .done
    }

    /// Returns "2026-01-31T12:00:00Z     4711  too large   user:1".
    static func line(_ removal: LoggedRemoval) -> String {
        Table.line(
            [removal.time.formatted(.iso8601), "\(removal.process)", words(removal.cause)],
            key: removal.key ?? "sha256:\(removal.keyDigest)",
            [.left, .right, .left],
            widths: [20, 7, 11]
        )
    }

    static func words(_ cause: LoggedRemoval.Cause) -> String {
        switch cause {
        case .collected(let reason): CollectionText.words(reason)
        case .removed: "removed"
        case .cleared: "cleared"
        case .repaired: "repaired"
        }
    }
}

extension LoggedRemoval {
    /// The reason of the removal, as JSON output names it.
    var reason: String {
        if case .collected(let why) = cause { why.rawValue } else { LogCommand.words(cause) }
    }

    var json: JSON.Object {
        [
            "time": time, "process": process, "reason": reason, "keyDigest": keyDigest.description,
            "key": key,
        ]
    }
}
