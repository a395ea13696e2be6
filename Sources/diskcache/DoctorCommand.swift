// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// `diskcache doctor`.
enum DoctorCommand: Command {
    static let name = "doctor"
    static let operands = ""
    static let summary = "say what the directory can do, and what is risky about it"
    static let options = [Option.json]
    static let details = """
        Looks at the directory, its owner and permissions, the file system, its room, locks and clock; not at
        the contents: `diskcache verify` does. A fallback works, at a price; a risk is something to do.

        JSON: path, findings (each with subject, level: fine, fallback or risk, state, and advice where there
        is any).

        Exit status: 0 nothing to do; 64 usage; 73 no directory; 77 permission; 78 a risk was found, or there is
        no cache.

        Example:
          diskcache doctor
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...0, "no KEY")
        let cache = try arguments.requireCache()
        let findings = try cache.facts().findings
        if arguments.has("json") {
            try Output.print(JSON.line(Description(path: cache.path, findings: findings)))
        } else {
            try Output.print("\(cache.path.escaped)\n" + text(findings))
        }
        return findings.contains { $0.level == .risk } ? .configuration : .done
    }

    static func text(_ findings: [Finding]) -> String {
        var table = Table(.left, .left, .left)
        for finding in findings {
            let level =
                switch finding.level {
                case .fine: "ok"
                case .fallback: "fallback"
                case .risk: "RISK"
                }
            table.add(level, finding.subject, finding.state)
            if let advice = finding.advice { table.add("", "", advice) }
        }
        return table.text
    }

    private struct Description: Encodable {
        let path: String
        let findings: [Finding]
    }
}
