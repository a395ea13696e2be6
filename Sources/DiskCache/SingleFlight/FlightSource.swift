// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// What a flight needs to know of the form in which it handles a value: where it is found and how it is kept.
protocol FlightSource: Sendable {
    associatedtype Value: Sendable

    var cache: SharedCache { get }
    var key: String { get }
    /// Tells this form from the others that the cache gives out for the same key.
    ///
    /// Two sources with one form must have one type of value.
    var form: ObjectIdentifier { get }

    /// The value as a get finds it: once per request, and again after waiting.
    func lookup(allowingStale: Bool) throws(CacheError) -> FlightHit<Value>?
    /// The same, without blocking the thread.
    func lookupOffThread(allowingStale: Bool) async throws(CacheError) -> FlightHit<Value>?
    /// Keeps a value that took `cost` to compute, as a put does; for as long as `options` may need it.
    func store(
        _ value: Value,
        cost: Duration,
        for options: ComputeOptions,
        _ room: RoomTerms
    ) throws(CacheError)
}

/// A value that was found.
struct FlightHit<Value: Sendable>: Sendable {
    let value: Value
    let isStale: Bool
    let origin: HitOrigin

    var entry: CacheEntry { origin.entry }
}

/// A key's value as bytes, and the terms on which a computed one is kept.
struct DataFlight: FlightSource {
    let cache: SharedCache
    let key: String
    let expires: Expiration?
    let onAccess: AccessExtension?
    let attributes: EntryAttributes

    var form: ObjectIdentifier { ObjectIdentifier(Data.self) }

    func lookup(allowingStale: Bool) throws(CacheError) -> FlightHit<Data>? {
        try cache.get(key, allowingStale: allowingStale).map(Self.hit)
    }

    func lookupOffThread(allowingStale: Bool) async throws(CacheError) -> FlightHit<Data>? {
        try await cache.get(key, allowingStale: allowingStale).map(Self.hit)
    }

    private static func hit(_ hit: CacheHit) -> FlightHit<Data> {
        FlightHit(value: hit.data, isStale: hit.isStale, origin: hit.origin)
    }

    func store(
        _ value: Data,
        cost: Duration,
        for options: ComputeOptions,
        _ room: RoomTerms
    ) throws(CacheError) {
        let attributes = options.attributes(attributes, cost: cost)
        let terms = SharedCache.Terms(expires: expires, onAccess: onAccess, attributes: attributes)
        // Through in any case: others compute once the flight has ended and nothing is on disk.
        try cache.putThrough(value, forKey: key, terms, room)
    }
}
