// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import FoundationEssentials
package import Platform

/// What other machines share with this one: the tier below the disk, which this module knows nothing else of.
///
/// What is written here is noted by the store, in its outbox (`Store.note`); the tier sends it from there.
package protocol RemoteTier: AnyObject, Sendable {
    /// How long a call may take longer for it, at most.
    var limit: Duration { get }

    /// Whether anybody would be asked for a key now.
    ///
    /// No system call.
    func isWorthAsking(_ key: Digest) -> Bool

    /// What the remote has: nil where it has nothing, is not asked, is too slow or gives something that is
    /// not right.
    ///
    /// Blocks the calling thread, one of ours, until `deadline` at most.
    func look(_ key: Digest, until deadline: ContinuousClock.Instant) -> RemoteValue?

    /// Told that what a look has brought is on disk now.
    func adopted(_ value: RemoteValue, for key: Digest)

    /// Sends what waits, as far as there is time, and ends what it does in the background.
    func close(until deadline: ContinuousClock.Instant)

    /// What it has seen so far.
    var activity: CacheActivity.Remote { get }
}

/// A value from another machine: whole, checked, and not expired.
package struct RemoteValue: Sendable {
    package let bytes: Data
    /// What names the bytes.
    package let content: Content
    /// Its terms, as they were noted where it was stored.
    package let record: Record
    /// Levels that have been asked before the one that had it, and had nothing.
    package let missingLevels: [Int]

    package init(bytes: Data, content: Content, record: Record, missingLevels: [Int] = []) {
        self.bytes = bytes
        self.content = content
        self.record = record
        self.missingLevels = missingLevels
    }
}

/// What a tier is told of the cache that it belongs to.
package struct RemoteHost: Sendable {
    /// The directory's files: another object after the directory was replaced.
    package let store: @Sendable () -> Store
    /// The clock by which values expire.
    package let now: @Sendable () -> Timestamp
    /// Tells the program's listeners.
    package let report: @Sendable (CacheEvent) -> Void
}
