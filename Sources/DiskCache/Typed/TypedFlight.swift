// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// A key's value as a typed view decodes it, and the terms on which a computed one is kept.
struct TypedFlight<Codec: CacheCodec>: FlightSource {
    let view: TypedCache<Codec>
    let key: String
    let expires: Expiration?
    let onAccess: AccessExtension?
    let attributes: EntryAttributes

    var cache: SharedCache { view.cache }
    var form: ObjectIdentifier { ObjectIdentifier(Codec.self) }

    func lookup(allowingStale: Bool) throws(CacheError) -> FlightHit<Codec.Value>? {
        try view.get(key, allowingStale: allowingStale).map(Self.hit)
    }

    func lookupOffThread(allowingStale: Bool) async throws(CacheError) -> FlightHit<Codec.Value>? {
        try await view.get(key, allowingStale: allowingStale).map(Self.hit)
    }

    private static func hit(_ hit: TypedHit<Codec.Value>) -> FlightHit<Codec.Value> {
        FlightHit(value: hit.value, isStale: hit.isStale, origin: hit.origin)
    }

    func store(
        _ value: Codec.Value,
        cost: Duration,
        for options: ComputeOptions,
        _ room: RoomTerms
    ) throws(CacheError) {
        let attributes = options.attributes(attributes, cost: cost)
        let terms = SharedCache.Terms(expires: expires, onAccess: onAccess, attributes: attributes)
        // Through in any case: others compute once the flight has ended and nothing is on disk.
        try view.putThrough(value, try view.encode(value, forKey: key), forKey: key, terms, room)
    }
}
