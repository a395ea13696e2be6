// SPDX-License-Identifier: Apache-2.0

/// The task of one sweep.
package struct SweepRequest: Sendable {
    /// The limits to enforce: bytes, entries, free space, ages.
    package var limits = CacheLimits()
    /// The entries that may be deleted.
    ///
    /// Damaged entries, dangling entries and orphans are deleted regardless of the selection.
    package var selection = KeySelection.all
    /// Whether to delete only entries that have expired or that a rule removes, their objects, and leftovers of killed
    /// processes.
    package var expiredOnly = false
    /// How long to keep a partial value that no process has open, since its last write.
    package var partialLife: Duration = .seconds(3600)
    /// Whether to only determine what to delete, and delete nothing.
    package var isDryRun = false
    /// How long to wait while another process sweeps; zero to not wait at all.
    package var patience: Duration = .seconds(60)
    /// How long to wait for one stripe before the sweep leaves its files alone.
    package var stripePatience = Self.usualStripePatience
    /// How fast to work, and for how long at most.
    package var pace = SweepPace()
    /// Called now and then, on the thread that started the sweep.
    package var progress: @Sendable (CacheProgress) -> Void = { _ in }
    /// Called for each entry that is deleted, or would be in a dry run, on the thread that deleted it.
    ///
    /// If it is nil, the sweep does not read the keys, which saves a system call for each entry.
    package var onRemoval: (@Sendable (LoggedRemoval) -> Void)?
    /// The largest number of candidates at a time; tests lower it to get several passes.
    var candidateLimit = SweepCandidates.most

    package init() {}

    /// How long a normal sweep waits for one stripe.
    ///
    /// Writers hold stripes for microseconds. A process that still holds one after 0.4 s is stopped, and must not make
    /// everything else wait.
    ///
    /// This is half as long as other processes wait for a sweep without progress (``JanitorWait/longestStandstill``).
    static let usualStripePatience: Duration = .milliseconds(400)

    /// How long a sweep waits for one stripe if a put makes room: other stripes have entries to evict as well.
    static let hurriedStripePatience: Duration = .milliseconds(100)
}
