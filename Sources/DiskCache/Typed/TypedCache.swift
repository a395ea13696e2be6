// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// A view of a cache that encodes and decodes values of one type.
///
/// The memory tier keeps decoded values, so that a hit there does not decode again. Views are cheap: make one
/// wherever it is needed. All views of a cache with the same type of codec share what is in memory.
///
/// ```swift
/// let thumbs = cache.typed(Thumbnail.self)
/// try thumbs.put(thumbnail, forKey: "user:1", options: PutOptions(expires: .days(7)))
/// let thumb = try thumbs.get(forKey: "user:1")?.value
/// ```
public struct TypedCache<Codec: CacheCodec>: Sendable {
    /// The type that the codec encodes.
    public typealias Value = Codec.Value

    /// The cache that holds the values.
    public let cache: SharedCache
    /// The codec that writes and reads them.
    public let codec: Codec

    /// A view of `cache`.
    public init(_ cache: SharedCache, codec: Codec) {
        self.cache = cache
        self.codec = codec
    }

    /// Tells decoded values of different codecs apart, even if their types are the same.
    var form: ObjectIdentifier { ObjectIdentifier(Codec.self) }
}

extension SharedCache {
    /// A view of this cache that stores values of `type` as JSON.
    public func typed<Value: Codable & Sendable>(_ type: Value.Type) -> TypedCache<JSONCodec<Value>> {
        TypedCache(self, codec: JSONCodec())
    }
}

extension TypedCache {
    /// The value of `key`, or nil if there is none, it has expired, was damaged, or does not decode.
    ///
    /// - Throws: ``CacheError`` if the directory can't be read.
    public func get(forKey key: String, allowingStale: Bool = false) throws(CacheError) -> CacheHit<Value>? {
        switch try cache.pendingHit(key, allowingStale: allowingStale) {
        case .hit(let hit):
            return decode(hit.value).map { value in
                let held = HeldValue(value, key: key, form: form, record: hit.held.makeRecord(), cost: 0)
                return CacheHit(held, from: hit.tier, isStale: hit.isStale, at: hit.moment)
            }
        case .miss: return nil
        case .unsettled(let write):
            guard cache.writeBehind.awaitEnd(of: write) else {
                cache.counters.add(.miss)
                return nil
            }
            return try get(forKey: key, allowingStale: allowingStale)
        case .unknown: break
        }
        if let hit = heldHit(key) { return hit }
        let found = try cache.readThrough(key, form, allowingStale: allowingStale) { data in
            decode(data).map { ($0, codec.cost(of: $0, encodedSize: data.count)) }
        }
        return found.map { CacheHit($0.held, from: .disk, isStale: $0.isStale, at: $0.moment) }
    }

    /// The decoded value in memory.
    ///
    /// - Parameter mayRestore: whether to make a value whole that was discarded in part, on this thread.
    private func heldHit(_ key: String, mayRestore: Bool = true) -> CacheHit<Value>? {
        cache.core.held(key, form, as: Value.self, mayRestore: mayRestore).map {
            CacheHit($0.held, from: .memory, isStale: false, at: $0.moment)
        }
    }

    /// The value in memory, where no put waits to be published and it is whole.
    func memoryHit(_ key: String) throws(CacheError) -> CacheHit<Value>? {
        try cache.core.checkOpen()
        if !cache.writeBehind.isIdle, cache.writeBehind.isPending(Digest(ofKey: key)) { return nil }
        return heldHit(key, mayRestore: false)
    }

    /// Stores a value, replacing what was there.
    ///
    /// Otherwise like the put of `Data`.
    ///
    /// - Throws: ``CacheError``, with the code `encoding` if the value can't be encoded.
    public func put(
        _ value: Value,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) throws(CacheError) {
        if (options.writing ?? cache.configuration.writing) == .behind {
            return try cache.put(try encode(value, forKey: key), forKey: key, options: options)
        }
        try putThrough(value, forKey: key, options)
    }

    /// Stores a value on disk, encoded, and as it is in memory, if there is a memory tier.
    func putThrough(
        _ value: Value,
        forKey key: String,
        _ options: PutOptions,
        _ room: RoomTerms = RoomTerms()
    ) throws(CacheError) {
        let data = try encode(value, forKey: key)
        let cost = codec.cost(of: value, encodedSize: data.count)
        try cache.putThrough(data, forKey: key, options, room) {
            HeldValue(value, key: key, form: form, record: $0, cost: cost)
        }
    }

    /// Removes the value of `key`, whatever its type; false if there was none.
    @discardableResult
    public func remove(forKey key: String) throws(CacheError) -> Bool {
        try cache.remove(forKey: key)
    }

    func encode(_ value: Value, forKey key: String) throws(CacheError) -> Data {
        do {
            return try codec.encode(value)
        } catch {
            throw CacheError(.encoding, "store \(key): \(error): give a value that its codec can encode")
        }
    }

    /// nil for bytes of another version of the program, or of another codec.
    func decode(_ data: Data) -> Value? { try? codec.decode(data) }
}

// The asynchronous forms: encoding, decoding and system calls happen on threads of the library.

extension TypedCache {
    /// The value of `key`, or nil for a miss.
    ///
    /// A hit in memory doesn't change threads.
    public func get(forKey key: String, allowingStale: Bool = false) async throws(CacheError) -> CacheHit<
        Value
    >? {
        // Without a control file even a hit in memory asks the disk.
        if cache.core.store.hasGenerations, let hit = try memoryHit(key) { return hit }
        return try await offload(on: .reading) { () throws(CacheError) in
            try self.get(forKey: key, allowingStale: allowingStale)
        }
    }

    /// Stores a value, replacing what was there.
    public func put(_ value: Value, forKey key: String, options: PutOptions = PutOptions())
        async throws(CacheError)
    {
        try await offload { () throws(CacheError) in try self.put(value, forKey: key, options: options) }
    }

    /// Removes the value of `key`, whatever its type; false if there was none.
    @discardableResult
    public func remove(forKey key: String) async throws(CacheError) -> Bool {
        try await cache.remove(forKey: key)
    }
}
