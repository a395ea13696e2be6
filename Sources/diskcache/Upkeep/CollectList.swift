// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// What `diskcache gc --dry-run --list` prints: a line for each key that would go.
///
/// The threads of the collection add to it; the one that waits for them prints.
final class CollectList: Sendable {
    private let isJSON: Bool
    private let unprinted = Locked<[PlannedRemoval]>([])
    private let failure = Locked<(any Error)?>(nil)

    init(isJSON: Bool) {
        self.isJSON = isJSON
    }

    /// Adds what would go; on any thread.
    func add(_ removals: [PlannedRemoval]) {
        unprinted.withLock { $0 += removals }
    }

    /// Prints what was added since, above the line of progress; on one thread.
    func show(above line: ProgressLine) {
        let removals = unprinted.withLock { unprinted in
            defer { unprinted = [] }
            return unprinted
        }
        if removals.isEmpty { return }
        do {
            let text = try removals.map { try isJSON ? $0.json : $0.line }.joined()
            try line.print(String(text.dropLast()))
        } catch {
            // The collection ends by itself, and removes nothing.
            failure.withLock { $0 = $0 ?? error }
        }
    }

    /// Throws why something could not be printed, if it could not.
    func check() throws {
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}

extension PlannedRemoval {
    private static let columns: [Table.Alignment] = [.left, .right]
    /// They fit all reasons, and "1023.9 KiB".
    private static let widths = [11, 10]

    /// "too large      1.5 GiB  user:1".
    var line: String {
        let size = size.map { Quantity.text(bytes: Int64($0)) } ?? ""
        let name = key ?? "sha256:\(digest)"
        return Table.line([CollectCommand.words(reason), size], key: name, Self.columns, widths: Self.widths)
    }

    var json: String {
        get throws {
            let object: JSON.Object = [
                "reason": reason.rawValue, "size": size, "keyDigest": digest.description, "key": key,
            ]
            return try JSON.line(object)
        }
    }
}
