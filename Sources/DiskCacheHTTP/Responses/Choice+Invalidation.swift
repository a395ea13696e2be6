// SPDX-License-Identifier: Apache-2.0

extension Choice {
    /// The choice that an invalidation stores, replacing an earlier one if there is any.
    ///
    /// A response that was requested before is not stored: its requester has seen another choice, or none.
    static var invalidated: Choice {
        var choice = Choice()
        choice.epoch = "~" + choice.epoch
        return choice
    }

    /// Whether an invalidation created it.
    var isInvalidated: Bool { epoch.hasPrefix("~") }
}
