// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials

/// Where the values of flights come from and go to: a cache, for bytes, or a typed view of it.
protocol FlightSource: Sendable {
    associatedtype Value
    associatedtype Hit: FlightHit<Value>

    var cache: SharedCache { get }
    /// Tells its values from those of the cache's other sources.
    ///
    /// Two sources with one form must have one type of value.
    var form: ObjectIdentifier { get }

    /// The value as a get finds it.
    func get(_ key: String, allowingStale: Bool) throws(CacheError) -> Hit?
    /// The same, without blocking the thread.
    func get(_ key: String, allowingStale: Bool) async throws(CacheError) -> Hit?
    /// Stores a value on disk, and in memory, if there is any.
    func putThrough(
        _ value: Value,
        forKey key: String,
        _ terms: SharedCache.Terms,
        _ room: RoomTerms
    ) throws(CacheError)
}

/// A value that was found.
protocol FlightHit<Value>: Sendable {
    associatedtype Value: Sendable

    var value: Value { get }
    var isStale: Bool { get }
    var entry: CacheEntry { get }
}

extension CacheHit: FlightHit {
    var value: Data { data }
}

extension SharedCache: FlightSource {
    var cache: SharedCache { self }
    var form: ObjectIdentifier { HeldItem.bytes }
}

extension TypedHit: FlightHit {}

extension TypedCache: FlightSource {}
