// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// A cache's values as values of one type.
///
/// The memory tier keeps them decoded, so that a hit there does not decode again. Views are values: make
/// one wherever it is needed; all views of a cache with the same codec type share what is in memory.
///
/// ```swift
/// let thumbs = cache.typed(Thumbnail.self)
/// try thumbs.put(thumbnail, forKey: "user:1", expires: .days(7))
/// let thumb = try thumbs.get("user:1")?.value
/// ```
public struct TypedCache<Codec: CacheCodec>: Sendable {
    /// What the codec encodes.
    public typealias Value = Codec.Value

    /// The cache that holds the values.
    public let cache: SharedCache
    /// What writes and reads them.
    public let codec: Codec

    /// A view of `cache`.
    public init(_ cache: SharedCache, codec: Codec) {
        self.cache = cache
        self.codec = codec
    }

    /// Decoded values of other codecs are others', also where their type is the same.
    var form: ObjectIdentifier { ObjectIdentifier(Codec.self) }
}

/// A value that was found by a ``TypedCache``.
public struct TypedHit<Value: Sendable>: Sendable {
    /// The decoded value; one of a class may be shared with others who got it.
    public let value: Value
    /// Where it came from.
    public let tier: CacheHit.Tier
    /// Whether it has expired; only where stale values were asked for.
    public let isStale: Bool
    /// What it was found as, and when.
    private let held: HeldItem
    private let moment: Timestamp

    /// What belongs to it.
    public var entry: CacheEntry { held.entry(at: moment) }
}

extension TypedHit {
    init(_ held: HeldValue<Value>, from tier: CacheHit.Tier, isStale: Bool, at moment: Timestamp) {
        value = held.value
        self.held = held
        self.moment = moment
        self.tier = tier
        self.isStale = isStale
    }

    /// What the bytes of `hit` were decoded to.
    init(_ value: Value, of hit: CacheHit) {
        self.value = value
        (held, moment, tier, isStale) = (hit.held, hit.moment, hit.tier, hit.isStale)
    }
}

extension SharedCache {
    /// This cache's values as JSON of `type`.
    public func typed<Value: Codable & Sendable>(_ type: Value.Type) -> TypedCache<JSONCodec<Value>> {
        TypedCache(self, codec: JSONCodec())
    }

    /// This cache's values as `codec` writes and reads them.
    public func typed<Codec: CacheCodec>(_ type: Codec.Value.Type, codec: Codec) -> TypedCache<Codec> {
        TypedCache(self, codec: codec)
    }
}

extension TypedCache {
    /// The value of `key`, or nil: it is not there, has expired, was damaged, or does not decode.
    ///
    /// - Throws: ``CacheError`` where the directory can't be read.
    public func get(_ key: String, allowingStale: Bool = false) throws(CacheError) -> TypedHit<Value>? {
        switch try cache.pendingHit(key, allowingStale: allowingStale) {
        case .hit(let hit):
            return decode(hit.data).map { TypedHit($0, of: hit) }
        case .miss: return nil
        case .unsettled(let write):
            guard cache.writeBehind.awaitEnd(of: write) else {
                cache.counters.add(.miss)
                return nil
            }
            return try get(key, allowingStale: allowingStale)
        case .unknown: break
        }
        if let hit = heldHit(key) { return hit }
        let found = try cache.readThrough(key, form, allowingStale: allowingStale) { data in
            decode(data).map { ($0, codec.cost(of: $0, encodedSize: data.count)) }
        }
        return found.map { TypedHit($0.held, from: .disk, isStale: $0.isStale, at: cache.now) }
    }

    /// The decoded value in memory.
    private func heldHit(_ key: String) -> TypedHit<Value>? {
        cache.core.held(key, form, as: Value.self).map {
            TypedHit($0.held, from: .memory, isStale: false, at: $0.moment)
        }
    }

    /// The value in memory, where no put waits to be published.
    func memoryHit(_ key: String) throws(CacheError) -> TypedHit<Value>? {
        try cache.core.checkOpen()
        if !cache.writeBehind.isIdle, cache.writeBehind.isPending(Digest(ofKey: key)) { return nil }
        return heldHit(key)
    }

    /// Stores a value, replacing what was there; all else is as when storing `Data`.
    ///
    /// - Throws: ``CacheError``, with the code `encoding` where the value can't be encoded.
    public func put(
        _ value: Value,
        forKey key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes(),
        writing: WritePolicy? = nil
    ) throws(CacheError) {
        if (writing ?? cache.configuration.writing) == .behind {
            return try cache.put(
                try encode(value, forKey: key),
                forKey: key,
                expires: expires,
                onAccess: onAccess,
                attributes: attributes,
                writing: writing
            )
        }
        let terms = SharedCache.Terms(expires: expires, onAccess: onAccess, attributes: attributes)
        try putThrough(value, forKey: key, terms)
    }

    /// Stores a value on disk, encoded, and in memory, if there is any, as it is.
    func putThrough(
        _ value: Value,
        forKey key: String,
        _ terms: SharedCache.Terms,
        _ room: RoomTerms = RoomTerms()
    ) throws(CacheError) {
        let data = try encode(value, forKey: key)
        let cost = codec.cost(of: value, encodedSize: data.count)
        try cache.putThrough(data, forKey: key, terms, room) {
            HeldValue(value, key: key, form: form, record: $0, cost: cost)
        }
    }

    /// Removes the value of `key`, whatever its type; false: there was none.
    @discardableResult
    public func remove(_ key: String) throws(CacheError) -> Bool {
        try cache.remove(key)
    }

    func encode(_ value: Value, forKey key: String) throws(CacheError) -> Data {
        do {
            return try codec.encode(value)
        } catch {
            throw CacheError(.encoding, "store \(key): \(error): give a value that its codec can encode")
        }
    }

    /// nil: another version of the program stored it, or another codec.
    func decode(_ data: Data) -> Value? {
        do {
            return try codec.decode(data)
        } catch {
            return nil
        }
    }
}
