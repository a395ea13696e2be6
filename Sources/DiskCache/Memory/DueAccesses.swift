// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Hits in memory that must be recorded on disk, where eviction chooses the least recently used values.
///
/// Without these records, the keys with the most hits in memory would look the least used on disk. A hit only adds its
/// key here; the janitor and `close` write the records. Pure policy, without files.
struct DueAccesses {
    /// The maximum number of keys in one round, 40 bytes each.
    ///
    /// A process does not have more due keys in the second between two rounds of the janitor, unless it holds a million
    /// keys.
    static let capacity = 4096

    private(set) var times: [Digest: Timestamp] = [:]

    /// Adds an access.
    ///
    /// If there is no room, the access is dropped; an access is recorded when the key is due again, one access
    /// granularity later.
    mutating func add(_ key: Digest, at time: Timestamp) {
        guard times.count < Self.capacity || times[key] != nil else { return }
        times[key] = time
    }

    /// Removes and returns all due accesses.
    mutating func take() -> [Digest: Timestamp] {
        defer { times = [:] }
        return times
    }
}
