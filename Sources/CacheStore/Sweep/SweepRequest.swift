// SPDX-License-Identifier: Apache-2.0

/// What one sweep is to do.
package struct SweepRequest: Sendable {
    /// What it is to leave: bytes, entries, free space, ages.
    package var limits = CacheLimits()
    /// The entries that may go; damaged ones go in any case, and so do objects that no entry names.
    package var selection = KeySelection.all
    /// Only entries past their expiration, with the objects that this sets free, and leftovers of killed
    /// processes.
    package var expiredOnly = false
    /// How long a partial value that no process has open is kept since its last write.
    package var partialLife: Duration = .seconds(3600)
    /// Decide everything and delete nothing.
    package var isDryRun = false
    /// How long to wait while another process sweeps; zero: not at all.
    package var patience: Duration = .seconds(60)
    /// How long to wait for one stripe: what it guards is left alone then.
    package var stripePatience = Self.usualStripePatience
    /// How fast to work, and how long at most.
    package var pace = SweepPace()
    /// Called now and then, on the thread that began the sweep.
    package var progress: @Sendable (CacheProgress) -> Void = { _ in }
    /// Called for each entry that is deleted, or would be in a dry run, on the thread that has deleted it; nil: the keys
    /// are not looked up, which takes a system call for each.
    package var onRemoval: (@Sendable (LoggedRemoval) -> Void)?
    /// How many candidates there may be at a time: for tests of what takes several passes.
    var candidateLimit = SweepCandidates.most

    package init() {}

    /// Writers hold them for microseconds: a process that is not gone after 0.4 s is stopped, and everything else must
    /// not wait for it.
    ///
    /// Half of what others wait for a sweep that does not move (``JanitorWait/longestStandstill``).
    static let usualStripePatience: Duration = .milliseconds(400)

    /// The same where a put makes room: others hold something that can go as well.
    static let hurriedStripePatience: Duration = .milliseconds(100)
}
