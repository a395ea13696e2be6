// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Hits in memory that should be recorded on disk, where the least recently used values are chosen.
///
/// Without them the hottest keys would look the coldest. A hit only adds its key here; the janitor and `close`
/// record it. Policy only: it knows no files.
struct DueAccesses {
    /// Keys of one round, 40 bytes each.
    ///
    /// In a second between the janitor's rounds no process has more keys that are due, unless it holds a
    /// million of them.
    static let capacity = 4096

    private(set) var times: [Digest: Timestamp] = [:]

    /// What finds no room is noted when the key's turn comes again, one access granularity later.
    mutating func add(_ key: Digest, at time: Timestamp) {
        guard times.count < Self.capacity || times[key] != nil else { return }
        times[key] = time
    }

    /// All that are due, leaving none.
    mutating func take() -> [Digest: Timestamp] {
        defer { times = [:] }
        return times
    }
}
