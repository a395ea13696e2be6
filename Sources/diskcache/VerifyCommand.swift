// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache verify`.
enum VerifyCommand: Command {
    static let name = "verify"
    static let operands = ""
    static let summary = "read and hash every value, and hold all metadata against it"
    static let options = [
        Option("repair", help: "delete what is corrupt or names a value that is gone"), .json,
    ]
    static let details = """
        Safe beside readers and writers. Damage is found out by every read as well, and is a miss then.

        JSON: objects, objectBytes (length), entries, corruptObjects, corruptEntries, danglingEntries (names
        of files), unfinishedEntries (left by killed puts) and orphans (values that no key names), both of
        which the next gc removes, unrecognised (files that are not ours), repaired (how many were deleted),
        isClean.

        Exit status: 0 all is sound; 65 something was corrupt or dangling, also where it was repaired;
        64 usage; 73 no directory, or --repair on a read-only file system; 77 permission; 78 there is no cache.

        Example:
          diskcache verify --repair
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...0, "no KEY")
        let cache = try arguments.requireCache()
        let report = try ProgressLine.during { line in
            try cache.verify(repair: arguments.has("repair")) { line.show($0) }
        }
        try Output.print(arguments.has("json") ? JSON.line(report) : text(report, arguments))
        return report.isClean ? .done : .dataError
    }

    private static func text(_ report: VerifyReport, _ arguments: Arguments) -> String {
        let read = """
            \(Quantity.count(report.entries, "key")), \(Quantity.count(report.objects, "value")), \
            \(Quantity.text(bytes: report.objectBytes))
            """
        var text = report.corruptObjects.map { "corrupt value: \($0)\n" }.joined()
        text += report.corruptEntries.map { "corrupt entry: \($0)\n" }.joined()
        text += report.danglingEntries.map { "entry without its value: \($0)\n" }.joined()
        text += report.unrecognised.map { "not ours, left alone: \($0.escaped)\n" }.joined()
        if report.unfinishedEntries > 0 {
            text += "keys that were never finished, for gc to remove: \(report.unfinishedEntries)\n"
        }
        if report.orphans > 0 { text += "values without a key, for gc to remove: \(report.orphans)\n" }
        if report.isClean { return text + "sound: \(read)\n" }
        let damaged =
            report.corruptObjects.count + report.corruptEntries.count + report.danglingEntries.count
        text += "damaged: \(damaged), of them deleted: \(report.repaired); in all \(read)\n"
        return arguments.has("repair") ? text : text + "remove it with `diskcache verify --repair`\n"
    }
}
