// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials

/// The source and destination of flight values, by complete keys: a cache, for bytes, or a typed view of it.
protocol FlightSource: Sendable {
    associatedtype Codec: CacheCodec
    typealias Value = Codec.Value
    typealias Hit = CacheHit<Codec.Value>

    var cache: SharedCache { get }
    /// The codec, whose type distinguishes the values from those of the cache's other sources.
    var codec: Codec { get }

    /// Returns the value that a get finds.
    func get(forKey key: String, reading: ReadOptions) throws(CacheError) -> CacheHit<Codec.Value>?
    /// Returns the value that a get finds, without blocking the thread.
    func get(forKey key: String, reading: ReadOptions) async throws(CacheError) -> CacheHit<Codec.Value>?
    /// Stores a computed value on disk and in memory, if there is a memory tier, or in one of them, depending on the
    /// options.
    ///
    /// - Returns: the value in the form that memory holds.
    func keep(
        _ value: Codec.Value,
        forKey key: String,
        _ options: PutOptions,
        _ wait: SpaceWait
    ) throws(CacheError) -> MemoryValue<Codec.Value>
}

extension FlightSource {
    /// The codec's type, which distinguishes the forms of a key's value.
    var form: ObjectIdentifier { ObjectIdentifier(Codec.self) }

    /// Removes the value of `key` if the codec rejects it, unless it is replaced first.
    func removeRejected(forKey key: String) throws(CacheError) {
        // Never rejected.
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
        _ wait: SpaceWait
    ) throws(CacheError) -> MemoryValue<Data> {
        let held = try withIndicesFromZero(value)
        if keepsInMemoryAlone(options) {
            return try keepInMemory(held, forKey: key, codec, options, isComputed: true)
        }
        let cost = memoryCost(options) ?? held.count
        return try keep(held, form, encoded: held, forKey: key, cost: cost, options, wait)
    }
}
