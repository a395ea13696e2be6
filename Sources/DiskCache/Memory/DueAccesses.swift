// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Hits in memory that must be recorded on disk, where eviction chooses the least recently used values.
///
/// Otherwise the most used keys would look the least used. A hit only adds its key here; the janitor and `close` record it.
/// Pure policy, without files.
struct DueAccesses {
    /// The maximum number of keys in one round, 40 bytes each.
    ///
    /// In a second between the janitor's rounds no process has more due keys, unless it holds a million of them.
    static let capacity = 4096

    private(set) var times: [Digest: Timestamp] = [:]

    /// Adds an access.
    ///
    /// If there is no room, it is recorded when the key is due again, one access granularity later.
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
