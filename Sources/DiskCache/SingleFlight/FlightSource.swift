// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials

/// Where the values of flights come from and go to: a cache, for bytes, or a typed view of it.
protocol FlightSource: Sendable {
    associatedtype Value: Sendable
    typealias Hit = CacheHit<Value>

    var cache: SharedCache { get }
    /// Tells its values from those of the cache's other sources.
    ///
    /// Two sources with one form must have one type of value.
    var form: ObjectIdentifier { get }

    /// The value as a get finds it.
    func get(forKey key: String, reading: ReadOptions) throws(CacheError) -> CacheHit<Value>?
    /// The same, without blocking the thread.
    func get(forKey key: String, reading: ReadOptions) async throws(CacheError) -> CacheHit<Value>?
    /// Stores a value on disk, and in memory, if there is any.
    func putThrough(
        _ value: Value,
        forKey key: String,
        _ options: PutOptions,
        _ room: RoomTerms
    ) throws(CacheError)
}

extension SharedCache: FlightSource {
    var cache: SharedCache { self }
    var form: ObjectIdentifier { HeldItem.bytes }
}

extension TypedCache: FlightSource {}
