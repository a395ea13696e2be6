// SPDX-License-Identifier: Apache-2.0

/// What one sweep is to do.
package struct SweepRequest: Sendable {
    package var limits = SweepLimits()
    /// Only entries past their expiration, with the objects that this sets free, and leftovers of killed
    /// processes.
    package var expiredOnly = false
    /// Decide everything and delete nothing.
    package var isDryRun = false
    /// How long to wait while another process sweeps; zero: not at all.
    package var patience: Duration = .seconds(60)
    /// How long to wait for one stripe: what it guards is left alone then.
    package var stripePatience = Self.usualStripePatience
    /// How fast to work, and how long at most.
    package var pace = SweepPace()
    /// Called now and then, on the thread that began the sweep.
    package var progress: @Sendable (SweepProgress) -> Void = { _ in }
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

/// How many of a kind, and the bytes on disk that they take.
package struct SweepTally: Sendable, Equatable {
    package var count: Int
    package var bytes: Int64

    package init(count: Int = 0, bytes: Int64 = 0) {
        self.count = count
        self.bytes = bytes
    }

    mutating func add(_ size: Int64) { self += SweepTally(count: 1, bytes: size) }

    mutating func subtract(_ size: Int64) { self += SweepTally(count: -1, bytes: -size) }

    static func += (left: inout SweepTally, right: SweepTally) {
        left.count += right.count
        left.bytes += right.bytes
    }
}

/// What a sweep, or an eviction from its list, did, or in a dry run would have done.
package struct SweepReport: Sendable, Equatable {
    /// Entries removed, and orphans and temporaries deleted, by reason.
    ///
    /// The bytes of an entry include its object's where no other entry shares that.
    package var removed: [SweepReason: SweepTally] = [:]
    /// What is left, counted by a sweep: entries with their own bytes, objects with theirs.
    package var entries = SweepTally()
    package var objects = SweepTally()
    /// Entries and objects that somebody used or changed while they were about to go, or which an entry may name
    /// that could not be read: they stay.
    package var spared = 0
    /// Stripes whose lock was not to be had, because a holder is stopped: what they guard was left alone.
    package var skippedStripes: [String] = []
    /// Files where nothing of ours belongs, below the cache directory: they are never touched.
    package var unrecognised: [String] = []
    /// Files and shards that the kernel would not have looked at or deleted, below the cache directory: they were
    /// left alone.
    ///
    /// While an entry may be among them, objects that no entry is known to name stay too.
    package var unreadable: [String] = []
    /// False where time ran out: what was not reached is left to the next sweep, and what is left is not
    /// known as a whole.
    package var isComplete = true
    /// The time that it worked, without its rests.
    package var busy: Duration = .zero
    /// By how much the usage in the control file was too high (negative: too low) before this sweep counted;
    /// nil where there is none, or in a dry run.
    package var drift: SweepTally?
    /// For how long the most recently used entry that was evicted for want of room had not been used; nil where none
    /// was.
    package var horizon: Duration?
    /// Whether an eviction has come to the end of its list, or there is none: the next to go takes a sweep to find.
    package var isExhausted = false

    package init() {}

    /// What was removed for all reasons together.
    package var removedInAll: SweepTally {
        removed.values.reduce(into: SweepTally()) { $0 += $1 }
    }
}

/// How far a sweep or a verification is.
package struct SweepProgress: Sendable {
    /// What is being done.
    package enum Phase: String, Sendable {
        case waiting = "waiting for other writers"
        case scanning = "scanning"
        case deleting = "deleting"
        case verifying = "verifying values"
        case verifyingEntries = "verifying keys"
    }

    package let phase: Phase
    package let done: Int
    package let total: Int
    /// Files looked at so far; nil where steps are no files, and nobody has counted.
    package var items: Int?
    /// Bytes read so far; nil where none are.
    package var bytes: Int64?
}
