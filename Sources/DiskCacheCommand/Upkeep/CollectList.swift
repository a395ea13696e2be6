// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// What `diskcache gc --list` prints: a line for each key that goes, or would go.
///
/// The threads of the collection add to it; the one that waits for them prints.
final class CollectList: Sendable {
    private let isJSON: Bool
    private let unprinted = Locked<[LoggedRemoval]>([])
    private let failure = Locked<(any Error)?>(nil)

    init(isJSON: Bool) {
        self.isJSON = isJSON
    }

    /// Adds a key; on any thread.
    func add(_ removal: LoggedRemoval) {
        unprinted.withLock { $0.append(removal) }
    }

    /// Prints what was added since, above the line of progress; on one thread.
    func show(above line: ProgressLine) {
        let removals = unprinted.withLock { unprinted -> [LoggedRemoval] in
            defer { unprinted = [] }
            return unprinted
        }
        if removals.isEmpty { return }
        do {
            let text = try removals.map { try isJSON ? Self.json($0) : Self.line($0) }.joined()
            try line.print(String(text.dropLast()))
        } catch {
            // The collection goes on even if nobody reads the output; the exit status tells.
            failure.withLock { $0 = $0 ?? error }
        }
    }

    /// Throws why something could not be printed, if it could not.
    func check() throws {
        if let failure = failure.withLock({ $0 }) { throw failure }
    }

    /// "too large    user:1".
    static func line(_ removal: LoggedRemoval) -> String {
        let name = removal.key ?? "sha256:\(removal.keyDigest)"
        // All reasons fit.
        return Table.line([LogCommand.words(removal.cause)], key: name, [.left], widths: [11])
    }

    private static func json(_ removal: LoggedRemoval) throws -> String {
        let object: JSON.Object = [
            "reason": removal.reason, "keyDigest": removal.keyDigest.description, "key": removal.key,
        ]
        return try JSON.line(object)
    }
}
