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
    /// Stores a value on disk, and in memory, if there is any, and returns it as it is held.
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
        let cost = memoryCost(options) ?? held.count
        return try keep(held, forKey: key, options, room) {
            HeldValue(held, key: key, in: space, record: $0, cost: cost)
        }
    }
}

/// A value that no tier has: what would be stored with it is told when somebody asks.
final class UnkeptValue<Codec: CacheCodec>: HeldValue<Codec.Value>, @unchecked Sendable {
    private let codec: Codec

    /// - Parameter draft: the record, with any content.
    init(_ value: Codec.Value, key: String, in space: KeySpace, _ codec: Codec, draft: Record) {
        self.codec = codec
        super.init(value, key: key, in: space, form: ObjectIdentifier(Codec.self), record: draft, cost: 0)
    }

    /// - Complexity: O(*n*) in the value's bytes, which are made and hashed.
    override func makeRecord() -> Record {
        var record = record
        // What can't be encoded has no bytes that could be described.
        if let bytes = try? codec.encode(value) { record.content = Content(of: bytes.span) }
        return record
    }
}
