// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials

/// Where the values of flights come from and go to, by their whole keys: a cache, for bytes, or what a view makes of it.
protocol FlightSource: Sendable {
    associatedtype Codec: CacheCodec
    typealias Value = Codec.Value
    typealias Hit = CacheHit<Codec.Value>

    var cache: SharedCache { get }
    /// Its type tells the values from those of the cache's other sources.
    var codec: Codec { get }

    /// The value as a get finds it.
    func get(forKey key: String, reading: ReadOptions) throws(CacheError) -> CacheHit<Codec.Value>?
    /// The same, without blocking the thread.
    func get(forKey key: String, reading: ReadOptions) async throws(CacheError) -> CacheHit<Codec.Value>?
    /// Stores a value that was computed on disk, and in memory, if there is any, or in one of them alone, as the
    /// options say; returns it as it is held.
    func keep(
        _ value: Codec.Value,
        forKey key: String,
        _ options: PutOptions,
        _ room: RoomTerms
    ) throws(CacheError) -> HeldValue<Codec.Value>
}

extension FlightSource {
    /// Tells the forms of a key's value apart.
    var form: ObjectIdentifier { ObjectIdentifier(Codec.self) }

    /// Removes the value of `key` if the codec rejects it, and it is still that one when it goes.
    func removeRejected(forKey key: String) throws(CacheError) {
        // Bytes are what they are.
        if Codec.self == BytesCodec.self { return }
        try cache.remove(key, rejectedBy: codec)
    }
}

extension SharedCache: FlightSource {
    var cache: SharedCache { self }
    var codec: BytesCodec { BytesCodec() }

    func keep(
        _ value: Data,
        forKey key: String,
        _ options: PutOptions,
        _ room: RoomTerms
    ) throws(CacheError) -> HeldValue<Data> {
        let held = try withIndicesFromZero(value)
        if keepsInMemoryAlone(options) {
            return try keepInMemory(held, forKey: key, codec, options, isComputed: true)
        }
        let cost = memoryCost(options) ?? held.count
        return try keep(held, forKey: key, options, room) {
            HeldValue(held, key: key, in: space, record: $0, cost: cost)
        }
    }
}
