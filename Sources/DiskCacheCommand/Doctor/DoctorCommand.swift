// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// `diskcache doctor`.
enum DoctorCommand: Command {
    static let name = "doctor"
    static let summary = "check the directory, its file system and its limits, and report risks"
    static let optionList = """
        -r, --remote  also check the servers in config.json, and store a small object there
        \(Option.json)
        """
    static let details = """
        Checks the directory, its owner and permissions, the file system, the kernel, free space and limits,
        locks, clocks, collections and use by other versions. To check the contents, use `diskcache verify`. A
        fallback works, but costs time or space. A risk needs action.

        --remote checks for each server whether it can be reached, how long it takes to answer, whether a
        small object can be stored, read and removed there (with remote.mode read: only read), and whether its
        clock agrees with that of this machine.

        JSON: path, findings (each with subject, level (fine, fallback or risk), state and, unless the level
        is fine, advice). To measure the speed of the file system, use `diskcache bench --dir`.

        Exit status: 0 no risk was found; 64 usage; 69 --remote, and diskcache-net is missing; 73 not a
        directory; 77 permission; 78 a risk was found, or there is no cache.

        Examples:
          diskcache doctor
          diskcache doctor --json
          diskcache doctor --remote
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        if arguments.has("remote"), arguments.network == nil { throw arguments.restartWithNetwork() }
        // Before the cache is opened, because that replaces another version's control file.
        let version = ControlVersion.foreign(in: try arguments.directory())
        let cache = try arguments.requireCache()
        var facts = try DirectoryInspection(of: cache)
        facts.replacedControlVersion = version
        let findings = try facts.findings + RemoteChecks.findings(of: cache, arguments)
        try arguments.print(
            "\(cache.path.escaped)\n" + text(findings),
            painting: names.values.map { $0 },
            json: ["path": cache.path, "findings": findings] as JSON.Object
        )
        return findings.contains { $0.level == .risk } ? .configuration : .done
    }

    private static let names: [Finding.Level: (word: String, colour: Colour)] = [
        .fine: ("ok", .green), .fallback: ("fallback", .yellow), .risk: ("RISK", .red),
    ]

    private static func text(_ findings: [Finding]) -> String {
        var table = Table(.left, .left, .left)
        for finding in findings {
            table.add(names[finding.level]?.word ?? "", finding.subject, finding.state.singleLine)
            if let advice = finding.advice { table.add("", "", advice.singleLine) }
        }
        return table.text
    }
}
