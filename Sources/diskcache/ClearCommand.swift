// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache clear`.
enum ClearCommand: Command {
    static let name = "clear"
    static let operands = ""
    static let summary = "remove everything"
    static let options = [Option("yes", "y", help: "don't ask"), .json]
    static let details = """
        The way to empty a directory that other processes use: what they store meanwhile may stay. Asks
        first; where standard input is no terminal it needs --yes. The space is reclaimed at once.

        JSON: {"removed": how many keys}.

        Exit status: 0 done, also where the cache was empty; 1 the answer was no; 64 usage; 73 DIR is no
        directory, or a read-only file system; 75 another process collects garbage and did not end within a
        minute; 77 permission; 78 there is no cache.

        Example:
          diskcache clear --yes
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...0, "no KEY")
        let cache = try arguments.requireCache()
        if !arguments.has("yes"), try !ask("Remove everything in \(cache.path)? [y/N] ") {
            return .miss
        }
        let removed = try cache.removeAll()
        if arguments.has("json") {
            try Output.print(JSON.line(["removed": removed]))
        } else {
            try Output.print("removed \(Quantity.count(removed, "key"))\n")
        }
        return .done
    }

    private static func ask(_ question: String) throws -> Bool {
        guard Terminal.isInteractive(Terminal.standardInput) else {
            throw Failure.usage("clear: there is no terminal to ask at: give --yes to remove everything")
        }
        try Output.draw(question.singleLine, to: Terminal.standardError)
        return ["y", "yes"].contains((readLine() ?? "").lowercased())
    }
}
