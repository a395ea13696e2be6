// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// The counts of all processes at one point in time.
struct StatsReading {
    let path: String
    let instant = ContinuousClock.now
    let totals: CacheStatistics.Totals
    let last: CacheStatistics.LastCollection?
    /// The remote stores; nil if the directory is not shared with other machines, or this program can't reach them.
    let remote: CacheActivity.Remote?

    /// Reads the counts.
    ///
    /// - Parameter sharing: The same directory, opened with remote stores; nil if `cache` already has them.
    init(of cache: SharedCache, sharing: SharedCache? = nil) throws {
        path = cache.path
        guard let totals = try cache.directory.totals() else {
            throw Failure(
                .configuration,
                "read the counts of \(path): there is no control file: run `diskcache doctor`"
            )
        }
        self.totals = totals
        last = try cache.directory.lastCollection()
        remote = (sharing ?? cache).directory.remote
    }

    /// Returns the counts as an object.
    ///
    /// - Parameter part: The additional fields of this form of the command.
    func json(_ part: JSON.Object = [:]) -> JSON.Object {
        JSON.Object(
            part,
            totals.json,
            ["path": path, "lastCollection": last?.json, "remote": remote?.json] as JSON.Object
        )
    }
}
