// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// Whether the limits of a directory are below what is in use: what they evict is wanted again soon.
public struct EvictionPressure: Sendable, Equatable, Codable {
    /// Values evicted for the limits of size, keys or free space.
    public let evictions: Int
    /// Of those, how many had been used within ten minutes before.
    public let youngEvictions: Int
    /// Gets that found nothing.
    public let misses: Int
    /// Of those, how many were of keys that had been evicted lately, as estimated from one key in 64: with more room
    /// they would have been hits.
    public let ghostMisses: Int

    package init(evictions: Int, youngEvictions: Int, misses: Int, ghostMisses: Int) {
        self.evictions = evictions
        self.youngEvictions = youngEvictions
        self.misses = misses
        self.ghostMisses = ghostMisses
    }

    /// Of all that was done.
    public init(_ activity: CacheActivity) {
        self.init(
            evictions: activity.evictions,
            youngEvictions: activity.youngEvictions,
            misses: activity.misses,
            ghostMisses: activity.ghostMisses
        )
    }

    func since(_ earlier: EvictionPressure) -> EvictionPressure {
        EvictionPressure(
            evictions: evictions - earlier.evictions,
            youngEvictions: youngEvictions - earlier.youngEvictions,
            misses: misses - earlier.misses,
            ghostMisses: ghostMisses - earlier.ghostMisses
        )
    }

    /// Whether a larger limit would save much: half of what is evicted had been in use lately, and a tenth of the
    /// misses were of what had just been evicted.
    ///
    /// Either alone says little: a stream of values that nobody asks for twice is evicted young whatever the limit,
    /// and what comes back after a month need not be kept. Below 4 misses that were really seen, the estimate is
    /// chance.
    public var isHigh: Bool {
        ghostMisses >= 4 * EvictedKeys.sample && ghostMisses >= misses / 10 && youngEvictions * 2 >= evictions
            && evictions > 0
    }
}
