// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// The output of `diskcache gc --list`: a line for each key that is, or would be, removed.
///
/// The threads of the collection add keys; the thread that waits for the collection prints them.
final class CollectList: Sendable {
    private let isJSON: Bool
    private let unprinted = Locked<[LoggedRemoval]>([])
    private let failure = Locked<(any Error)?>(nil)

    init(isJSON: Bool) {
        self.isJSON = isJSON
    }

    /// Adds a key; may be called on any thread.
    func add(_ removal: LoggedRemoval) {
        unprinted.withLock { $0.append(removal) }
    }

    /// Prints the keys that were added since the last call, above the progress line; always called on the same thread.
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
            // If the output can't be written, the collection continues, and the exit status reports the error.
            failure.withLock { $0 = $0 ?? error }
        }
    }

    /// Throws the first error of a write, if there was one.
    func check() throws {
        if let failure = failure.withLock({ $0 }) { throw failure }
    }

    /// Returns "too large    user:1".
    static func line(_ removal: LoggedRemoval) -> String {
        let name = removal.key ?? "sha256:\(removal.keyDigest)"
        // The width fits all reasons.
        return Table.line([LogCommand.words(removal.cause)], key: name, [.left], widths: [11])
    }

    private static func json(_ removal: LoggedRemoval) throws -> String {
        let object: JSON.Object = [
            "reason": removal.reason, "keyDigest": removal.keyDigest.description, "key": removal.key,
        ]
        return try JSON.line(object)
    }
}
