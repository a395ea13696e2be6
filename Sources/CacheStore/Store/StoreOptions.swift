// SPDX-License-Identifier: Apache-2.0

package import Platform

/// How a store is opened.
package struct StoreOptions: Sendable {
    package var recordForm: RecordForm = .attribute
    /// Whether a put reaches the medium before it returns.
    ///
    /// If it is false, a power failure may lose or damage values, which reads detect and treat as misses.
    package var isDurable = false
    /// How old an access time on disk may become before a hit renews it.
    package var accessGranularity: Duration = Accesses.defaultGranularity

    /// Whether a get verifies the checksum of a value in addition to its length.
    package var checksContent = true

    /// How long a put waits until other processes make room, if the directory is at one of its limits or the disk is full.
    package var roomPatience: Duration = .seconds(60)

    /// The clock of the versions of changes (``ChangeVersion``).
    package var clock: @Sendable () -> Timestamp = { .now }

    /// Whether small values are stored in packs, if the file system allows it.
    ///
    /// Not finished: collections and listings do not see such values.
    var packsSmallValues = false

    /// Called at each step of a put; tests use it to stop the put there.
    package var atStep: (@Sendable (PutStep) -> Void)?

    /// The capabilities to assume instead of probing the file system; tests use it to force fallbacks.
    package var assumedCapabilities: Capabilities?

    package init() {}
}

/// The progress of a put.
package enum PutStep: String, Sendable, CaseIterable {
    /// The put has claimed its space, if necessary.
    case claimed
    /// The object is written and has no name yet.
    case written
    /// The put holds the object's stripe, shared.
    case objectLocked
    /// The object is counted and has no name yet.
    case counted
    /// The put also holds the entry's stripe.
    case entryLocked
}
