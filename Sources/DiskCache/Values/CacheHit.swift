// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

/// A value returned by the cache, with its origin and metadata.
public struct CacheHit<Value: Sendable>: Sendable {
    /// The origin of the value.
    public let source: HitSource
    /// Whether the value has expired: only if the caller accepts stale values, or allows them as a fallback.
    public let isStale: Bool
    /// A single reference, so that creating, inspecting and dropping a hit changes no other reference count.
    let held: MemoryValue<Value>
    /// When the value was found.
    let moment: Timestamp

    init(_ held: MemoryValue<Value>, from source: HitSource, isStale: Bool, at moment: Timestamp) {
        self.held = held
        self.source = source
        self.isStale = isStale
        self.moment = moment
    }

    /// The value.
    ///
    /// An instance of a class may be shared with other callers.
    public var value: Value { held.value }

    /// The metadata of the value.
    ///
    /// For a value that is not stored, the metadata that it would be stored with.
    public var entry: CacheEntry { held.entry(at: moment) }

    /// The time from storing the value to finding it; never negative.
    public var age: Duration { max(.zero, moment - created) }

    /// The hit as returned to another call in this process that waited for this one.
    var joined: CacheHit { CacheHit(held, from: .joined, isStale: isStale, at: moment) }

    /// When the value was stored.
    var created: Timestamp { held.record.created }

    /// Returns whether the value was stored before `oldest`; false if that is nil.
    @inline(__always)
    func isOlder(than oldest: Timestamp?) -> Bool {
        guard let oldest else { return false }
        return created < oldest
    }
}

extension CacheHit where Value == Data {
    /// The value's bytes, exactly as they were stored.
    public var value: Data {
        // Yielded instead of returned, so that inspecting the value changes no reference count.
        _read { yield held.value }
    }
}

/// The origin of a value.
@nonexhaustive
public enum HitSource: String, Sendable {
    /// This process's memory.
    case memory
    /// The directory that all processes share.
    case disk
    /// Another machine, through a remote server.
    case remote
    /// The closure of this call.
    case computed
    /// The closure of another call in this process, for whose result this call waited.
    case joined
}
