// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import FoundationEssentials
package import Platform

/// The tier below the disk, which several machines share.
///
/// The store notes changes in its outbox (`Store.note`); the tier sends them from there.
package protocol RemoteTier: AnyObject, Sendable {
    /// How much longer a call may take because of it, at most.
    var limit: Duration { get }

    /// Whether a server would be asked for a key now.
    ///
    /// No system call.
    func isWorthAsking(_ key: Digest) -> Bool

    /// The servers' value: nil if they have none, are not asked or too slow, or return a wrong value.
    ///
    /// Blocks the calling thread, which belongs to the library, until `deadline` at most.
    func look(_ key: Digest, until deadline: ContinuousClock.Instant) -> RemoteValue?

    /// Notes that a value from ``look(_:until:)`` is on disk now.
    func adopted(_ value: RemoteValue, for key: Digest)

    /// Sends pending changes, as far as there is time, and ends the work in the background.
    func close(until deadline: ContinuousClock.Instant)

    /// The counts so far.
    var activity: CacheActivity.Remote { get }
}

/// A value from another machine: whole, checked, and not expired.
package struct RemoteValue: Sendable {
    package let bytes: Data
    /// The digest, length and checksum of the bytes.
    package let content: Content
    /// Its terms, from the machine that stored it.
    package let record: Record
    /// The levels that were asked before and did not have it.
    package let missingLevels: [Int]

    package init(bytes: Data, content: Content, record: Record, missingLevels: [Int] = []) {
        self.bytes = bytes
        self.content = content
        self.record = record
        self.missingLevels = missingLevels
    }
}

/// The cache that a tier belongs to.
package struct RemoteHost: Sendable {
    /// The directory's files: another object after the directory was replaced.
    package let store: @Sendable () -> Store
    /// The clock by which values expire.
    package let now: @Sendable () -> Timestamp
    /// Reports an event to the program's listeners.
    package let report: @Sendable (CacheEvent) -> Void
}
