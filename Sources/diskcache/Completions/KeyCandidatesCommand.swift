// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// What the shells ask while somebody types a key.
///
/// The keys that begin with a text, one a line: few enough for a screen, soon enough for a keystroke, and none
/// that could speak to the terminal or be taken for two.
enum KeyCandidatesCommand: Command {
    static let name = "complete-keys"
    static let operands = "PREFIX"
    static let summary = "list keys that begin with a text, for the shells' completions"
    static let isHidden = true
    static let options: [Option] = []
    static let details = ""

    /// More than a shell shows without asking (bash asks from 100 on).
    static let limit = 200

    /// After that a keystroke seems to hang; a cache of a million keys takes seconds to list.
    static let patience: Duration = .milliseconds(250)

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...1, "PREFIX")
        guard let cache = try arguments.openExistingCache() else { return .done }
        let clock = ContinuousClock()
        let end = clock.now + patience
        let found = candidates(
            beginning: arguments.operands.first ?? "",
            among: try cache.entries().lazy.map { entry -> String? in
                // What can't be read is nothing to propose, and no place to complain.
                guard case .success(let entry) = entry else { return nil }
                return entry.key
            },
            isLate: { clock.now >= end }
        )
        try Output.print(found.map { "\($0)\n" }.joined())
        return .done
    }

    /// Those of `keys` that begin with `prefix` and can stand on a line as they are, in order.
    static func candidates(
        beginning prefix: String,
        among keys: some Sequence<String?>,
        isLate: () -> Bool
    ) -> [String] {
        var found: [String] = []
        for key in keys {
            if let key, key.utf8.starts(with: prefix.utf8), key == key.singleLine { found.append(key) }
            if found.count == limit || isLate() { break }
        }
        return found.sorted()
    }
}
