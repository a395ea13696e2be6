// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

/// A value that was found.
public struct CacheHit<Value: Sendable>: Sendable {
    /// The origin of the value.
    public let source: SharedCache.Source
    /// Whether it has expired, which happens only if stale values were asked for, or may be fallen back on.
    public let isStale: Bool
    /// One reference: a hit that is made, looked at and dropped counts no other.
    let held: HeldValue<Value>
    /// When it was found.
    let moment: Timestamp

    init(_ held: HeldValue<Value>, from source: SharedCache.Source, isStale: Bool, at moment: Timestamp) {
        self.held = held
        self.source = source
        self.isStale = isStale
        self.moment = moment
    }

    /// The value.
    ///
    /// An instance of a class may be shared with other callers.
    public var value: Value { held.value }

    /// What the cache knows about it.
    ///
    /// For a value that is not kept: what it would know.
    public var entry: CacheEntry { held.entry(at: moment) }

    /// How long ago it was stored when it was found; not negative.
    public var age: Duration { max(.zero, moment - created) }

    /// The same as another call in this process has it which has waited for this one.
    var joined: CacheHit { CacheHit(held, from: .joined, isStale: isStale, at: moment) }

    /// When it was stored.
    var created: Timestamp { held.record.created }
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
    public enum Source: String, Sendable {
        /// This process's memory.
        case memory
        /// The files that all processes share.
        case disk
        /// Another machine, by way of the servers that it shares values through.
        case remote
        /// The closure of this very call.
        case computed
        /// The closure of another call in this process, which this one has waited for.
        case joined
    }
}
