// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// What happened in a second, on the average of an interval.
struct Rates: Encodable, Equatable {
    /// In memory, on disk and stale ones.
    let hits: Double
    let misses: Double
    let puts: Double
    let removals: Double
    let bytesRead: Double
    let bytesWritten: Double
    let computations: Double
    let waits: Double
    /// What sweeps removed, for whatever reason.
    let swept: Double

    /// - Parameter seconds: how long all that took; more than 0.
    init(_ activity: CacheActivity, seconds: Double) {
        func rate(_ count: Int) -> Double { (Double(count) / seconds * 100).rounded() / 100 }
        hits = rate(activity.hits + activity.staleHits)
        misses = rate(activity.misses)
        puts = rate(activity.puts)
        removals = rate(activity.removals)
        bytesRead = rate(activity.bytesRead)
        bytesWritten = rate(activity.bytesWritten)
        computations = rate(activity.computations)
        waits = rate(activity.waits)
        swept = rate(activity.swept.values.reduce(0, +))
    }
}
