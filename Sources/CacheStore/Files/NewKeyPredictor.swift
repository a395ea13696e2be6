// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A predictor of whether the next stored item is new, based on the previous ones.
///
/// A caller that expects a new item can skip the check for an existing one. The result must be correct even if the
/// prediction is wrong.
struct NewKeyPredictor: ~Copyable, Sendable {
    /// The number of consecutive new items after which the next one is likely new.
    ///
    /// A wrong guess costs about as much as eight correct ones save.
    private static let longRow = 8

    private let row = Atomic<Int>(0)

    var isLikely: Bool { row.load(ordering: .relaxed) >= Self.longRow }

    /// Records whether an item was new; stores nothing while all are new.
    func note(isNew: Bool) {
        let length = row.load(ordering: .relaxed)
        if !isNew {
            if length != 0 { row.store(0, ordering: .relaxed) }
        } else if length < Self.longRow {
            row.store(length + 1, ordering: .relaxed)
        }
    }
}
