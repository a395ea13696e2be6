// SPDX-License-Identifier: Apache-2.0

/// How a store is opened.
package struct StoreOptions: Sendable {
    package var recordForm: RecordForm = .attribute
    /// Whether a put reaches the medium before it returns.
    ///
    /// Without it a power cut may lose or damage values, which reading then finds out and treats as misses.
    package var isDurable = false
    /// How old an access time on disk may be before a hit renews it.
    package var accessGranularity: Duration = Accesses.defaultGranularity

    /// Whether a get compares a value's bytes with their checksum, and not their length alone.
    package var checksContent = true

    /// How long a put waits for room where the directory is at one of its limits, or the disk is full, while somebody
    /// makes some.
    package var roomPatience: Duration = .seconds(60)

    /// Called at each step of a put: for tests of one that is stopped there.
    package var atStep: (@Sendable (PutStep) -> Void)?

    /// What to take for what the file system can do, instead of finding out: for tests of what falls back.
    package var assumedCapabilities: Capabilities?

    package init() {}
}

/// How far a put is.
package enum PutStep: String, Sendable, CaseIterable {
    /// It has claimed its room, if any had to be.
    case claimed
    /// The object is written and has no name yet.
    case written
    /// It holds the object's stripe, shared.
    case objectLocked
    /// The object is counted and has no name yet.
    case counted
    /// It holds the entry's stripe too.
    case entryLocked
}
