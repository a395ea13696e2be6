// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache clear`.
enum ClearCommand: Command {
    static let name = "clear"
    static let summary = "remove everything"
    static let optionList = """
        -y, --yes  don't ask
        \(Option.json)
        """
    static let details = """
        Safe while other processes use the directory; what they store meanwhile may stay. Asks first, unless
        --yes is given; --yes is required if standard input is not a terminal. Reclaims the space at once.

        JSON: {"removed": number of keys}.

        Exit status: 0 done, even if the cache was empty; 1 the answer was no; 64 usage; 73 not a directory,
        or a read-only file system; 75 another process has been collecting garbage for a minute;
        77 permission; 78 there is no cache.

        Example:
          diskcache clear --yes
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let cache = try arguments.requireCache()
        if !arguments.has("yes") {
            guard Terminal.isInteractive(Terminal.standardInput) else {
                let advice = "give --yes to remove everything"
                throw Failure.usage("clear: standard input is not a terminal: \(advice)")
            }
            let question = "Remove everything in \(cache.path)? [y/N] "
            try Output.draw(question.singleLine, to: Terminal.standardError)
            guard ["y", "yes"].contains((readLine() ?? "").lowercased()) else { return .miss }
        }
        let counted = try cache.statistics()
        let removed = counted.entries - counted.expiredEntries
        try cache.removeAll()
        try cache.collect()
        try arguments.print("removed \(Quantity.count(removed, "key"))\n", json: ["removed": removed])
        return .done
    }
}
