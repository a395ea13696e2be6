// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Whether the next of many things that are stored is likely to be new, judged by those before it.
///
/// A caller that expects so can skip the call that would look for an old one; what it does instead must be right
/// either way.
struct Novelty: ~Copyable, Sendable {
    /// So many new ones in a row make the next one likely new: a wrong guess costs about as much as eight right
    /// ones save.
    private static let longRow = 8

    private let row = Atomic<Int>(0)

    var isLikely: Bool { row.load(ordering: .relaxed) >= Self.longRow }

    /// Takes note of how it was; stores nothing while all are new.
    func note(isNew: Bool) {
        let length = row.load(ordering: .relaxed)
        if !isNew {
            if length != 0 { row.store(0, ordering: .relaxed) }
        } else if length < Self.longRow {
            row.store(length + 1, ordering: .relaxed)
        }
    }
}
