// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import FoundationEssentials
package import Platform

/// The cache tier after the disk, which several machines share.
///
/// The store records changes in its outbox (`Store.note`); the tier sends them from there.
package protocol RemoteTier: AnyObject, Sendable {
    /// The maximum time by which the tier may delay a call.
    var limit: Duration { get }

    /// Returns whether a server would be asked for a key now.
    ///
    /// Makes no system call.
    func isWorthAsking(_ key: Digest) -> Bool

    /// Returns the servers' value; nil if no server is asked, or if none returns a valid value in time.
    ///
    /// Blocks the calling thread, until `deadline` at most.
    func look(_ key: Digest, until deadline: ContinuousClock.Instant) -> RemoteValue?

    /// Informs the tier that a value from ``look(_:until:)`` is on disk now.
    func adopted(_ value: RemoteValue, for key: Digest)

    /// Sends pending changes until the deadline at most, and ends the background work.
    func close(until deadline: ContinuousClock.Instant)

    /// The statistics so far.
    var activity: CacheActivity.Remote { get }
}

/// A value from another machine: complete, checked, and not expired.
package struct RemoteValue: Sendable {
    package let bytes: Data
    /// The digest, length and checksum of the bytes.
    package let content: Content
    /// The record, with the value's options, from the machine that stored the value.
    package let record: Record
    /// The levels of servers that were asked before and did not have the value.
    package let missingLevels: [Int]

    package init(bytes: Data, content: Content, record: Record, missingLevels: [Int] = []) {
        self.bytes = bytes
        self.content = content
        self.record = record
        self.missingLevels = missingLevels
    }
}

/// The cache that a tier belongs to.
package struct RemoteContext: Sendable {
    /// The directory's store; a different object after the directory was replaced.
    package let store: @Sendable () -> Store
    /// The clock by which values expire.
    package let now: @Sendable () -> Timestamp
    /// Reports an event to the program's listeners.
    package let report: @Sendable (CacheEvent) -> Void
}
