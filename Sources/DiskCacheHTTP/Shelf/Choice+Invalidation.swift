// SPDX-License-Identifier: Apache-2.0

extension Choice {
    /// What an invalidation leaves in the place of what was there, or of nothing.
    ///
    /// A response that was asked for before then is not stored: whoever asked has seen another choice, or none.
    static var invalidated: Choice {
        var choice = Choice()
        choice.epoch = "~" + choice.epoch
        return choice
    }

    /// Whether it began with an invalidation.
    var isInvalidated: Bool { epoch.hasPrefix("~") }
}
