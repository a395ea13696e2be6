// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// `diskcache clear`.
enum ClearCommand: Command {
    static let name = "clear"
    static let summary = "remove everything"
    static let optionList = """
        -y, --yes  don't ask for confirmation
        \(Option.json)
        """
    static let details = """
        Shows what the cache holds and asks for confirmation, unless --yes is given. --yes is required if
        standard input is not a terminal. Other processes can keep using the directory: they no longer get
        values stored before, and what they store meanwhile stays. Then a collection reclaims the space; on a
        terminal, it shows its progress. clear ignores the scope: to remove a part, use `diskcache rm` with
        --prefix or --tag.

        JSON: removed (number of keys that had not expired), removedBytes (of their files and values, and of
        leftovers).

        Exit status: 0 done, even if the cache was empty; 1 the answer was no; 64 usage; 73 not a directory,
        or a read-only file system; 75 the values are removed, but their space is not free yet, because
        another process has been collecting for a minute; 77 permission; 78 there is no cache, or config.json
        is damaged (the values are removed, but their space is not free yet).

        Example:
          diskcache clear --yes
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let cache = try arguments.requireCache()
        let isAsking = !arguments.has("yes")
        guard !isAsking || Terminal.isInteractive(Terminal.standardInput) else {
            let advice = "give --yes to remove everything"
            throw Failure.usage("clear: standard input is not a terminal: \(advice)")
        }
        let found = try cache.directory.statistics()
        let contents = Quantity.contents(
            keys: found.entries,
            values: found.objects,
            bytes: found.entryBytes + found.objectBytes
        )
        if isAsking, try !isConfirmed("Remove everything in \(cache.path): \(contents)?") { return .miss }
        try cache.removeAll()
        let report: CollectionReport
        do {
            report = try CollectCommand.collect(cache, CollectionOptions(), insists: false).report
        } catch let error as CacheError {
            let words = "the values are removed; the next collection reclaims their space"
            throw Failure(ExitStatus(error.code), "clear: \(words): \(error.message)")
        }
        try arguments.print(
            text(contents, report),
            json: ["removed": found.entries - found.expiredEntries, "removedBytes": report.removedBytes]
                as JSON.Object
        )
        return .done
    }

    private static func isConfirmed(_ question: String) throws -> Bool {
        try Output.draw("\(question) [y/N] ".singleLine, to: Terminal.standardError)
        let answer = try doing("read the answer") { () throws(Errno) in try line() }
        return ["y", "yes"].contains(answer.lowercased())
    }

    /// Reads a line from standard input; waits for it also if the stream is non-blocking.
    private static func line() throws(Errno) -> String {
        try FileDescriptor.borrowing(0) { (input) throws(Errno) in
            var bytes: [UInt8] = []
            while !bytes.contains(UInt8(ascii: "\n")) {
                let piece = try input.readAvailable()
                if piece.isEmpty { break }
                bytes += piece
            }
            return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        }
    }

    private static func text(_ contents: String, _ report: CollectionReport) -> String {
        let isEmpty = report.entries.count == 0 && report.objects.count == 0
        let left = CollectionText.words(left: report.entries, report.objects)
        return "removed \(contents)\n" + (isEmpty ? "" : "left, stored or used meanwhile: \(left)\n")
            + CollectCommand.notes(report)
    }
}
