// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Hits in memory that should be noted on disk, where the least recently used values are chosen from.
///
/// Without them the hottest keys would look the coldest. A hit only puts its key down here; the janitor
/// and `close` note it. Policy only: it knows no files.
struct DueAccesses {
    /// Keys of one round, 40 bytes each: in a second of the janitor's rounds no process has more keys whose
    /// turn comes, unless it holds a million of them; what does not fit has its turn with its next hit.
    static let capacity = 4096

    private(set) var times: [Digest: Timestamp] = [:]

    /// False: there is no room, and the next hit must come again.
    mutating func add(_ key: Digest, at time: Timestamp) -> Bool {
        guard times.count < Self.capacity || times[key] != nil else { return false }
        times[key] = time
        return true
    }

    /// All that are due, leaving none.
    mutating func take() -> [Digest: Timestamp] {
        defer { times = [:] }
        return times
    }
}
