// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

/// A value that was found.
public struct CacheHit<Value: Sendable>: Sendable {
    /// Where it came from.
    public let tier: SharedCache.Tier
    /// Whether it has expired, which happens only if stale values were asked for.
    public let isStale: Bool
    /// One reference: a hit that is made, looked at and dropped counts no other.
    let held: HeldValue<Value>
    /// When it was found.
    let moment: Timestamp

    init(_ held: HeldValue<Value>, from tier: SharedCache.Tier, isStale: Bool, at moment: Timestamp) {
        self.held = held
        self.tier = tier
        self.isStale = isStale
        self.moment = moment
    }

    /// The value.
    ///
    /// An instance of a class may be shared with other callers.
    public var value: Value { held.value }

    /// What the cache knows about it.
    public var entry: CacheEntry { held.entry(at: moment) }
}

extension CacheHit where Value == Data {
    /// The value's bytes, exactly as they were stored.
    public var value: Data {
        // Yielded, not returned: only looking at it counts no reference.
        _read { yield held.value }
    }
}

extension SharedCache {
    /// Where a value came from.
    @nonexhaustive
    public enum Tier: String, Sendable {
        /// This process's memory.
        case memory
        /// The files that all processes share.
        case disk
    }
}
