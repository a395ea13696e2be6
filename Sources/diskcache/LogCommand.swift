// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// `diskcache log`.
enum LogCommand: Command {
    static let name = "log"
    static let operands = "[KEY]"
    static let summary = "say which process removed which key, when and why"
    static let options = [
        Option("limit", "n", "COUNT", help: "only the newest so many"),
        .json,
    ]
    static let details = """
        Prints the event log of the directory, the newest removal last; with KEY, only those of this key. The
        log is kept where `diskcache config set event-log SIZE` has given it room; when that is full, the older
        half goes. A key that gc has removed is shown as sha256: and its digest, as gc does not read it; with
        KEY it is found all the same. What was overwritten is not logged.

        Reasons: those of gc (see `diskcache gc --help`); removed (by rm or a program); cleared (by clear,
        rm --tag or a program); repaired (found damaged by a reader or by verify).

        JSON: one object a line: time (UTC, ISO 8601), process, reason (staleTemporary, expired, dangling,
        corrupt, age, idle, entries, size, freeSpace, removed, cleared, repaired), keyDigest, key (left out
        where it is not known).

        Exit status: 0 done; 1 nothing was logged, or nothing of KEY; 64 usage; 73 DIR is no directory; 74 it
        could not be read; 77 permission; 78 there is no cache.

        Examples:
          diskcache log page
          diskcache log --limit 20 --json
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...1, "at most one KEY")
        let key = arguments.operands.isEmpty ? nil : try arguments.key()
        let limit = try arguments.value("limit", as: Quantity.count) ?? .max
        let cache = try arguments.requireCache()
        guard let removals = try cache.removals(ofKey: key, limit: limit) else {
            throw Failure(
                .miss,
                "read the event log of \(cache.path): nothing was logged: "
                    + "where none is kept, `diskcache config set event-log 1M` begins one"
            )
        }
        if removals.isEmpty { return .miss }
        try Output.toStandardOutput { output in
            for removal in removals {
                try output.write(
                    arguments.has("json") ? JSON.line(Description(removal)) : line(removal)
                )
            }
        }
        return .done
    }

    /// A removal in JSON.
    struct Description: Encodable {
        let time: Date
        let process: Int32
        let reason: String
        let keyDigest: String
        let key: String?

        init(_ removal: LoggedRemoval) {
            time = removal.time
            process = removal.process
            keyDigest = removal.keyDigest.description
            key = removal.key
            reason =
                switch removal.cause {
                case .collected(let reason): reason.rawValue
                case .removed: "removed"
                case .cleared: "cleared"
                case .repaired: "repaired"
                }
        }
    }

    /// "2026-01-31T12:00:00Z     4711  too large   user:1".
    static func line(_ removal: LoggedRemoval) -> String {
        let cells = [
            removal.time.formatted(.iso8601), "\(removal.process)", words(removal.cause), "|",
        ]
        // The key comes last and as it is: it may end in spaces.
        let head = Table.line(cells, [.left, .right, .left, .left], widths: [20, 7, 11, 0]).dropLast(2)
        return head + (removal.key ?? "sha256:\(removal.keyDigest)").escaped + "\n"
    }

    static func words(_ cause: LoggedRemoval.Cause) -> String {
        switch cause {
        case .collected(let reason): CollectCommand.words(reason)
        case .removed: "removed"
        case .cleared: "cleared"
        case .repaired: "repaired"
        }
    }
}
