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
    public func get(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheHit<Value>? {
        try cache.find(key, codec, reading)
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
        if cache.waitsForNobody(options) {
            return try cache.put(try encode(value, forKey: key), forKey: key, options: options)
        }
        _ = try keep(value, forKey: key, options)
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
}

// The asynchronous forms: encoding, decoding and system calls happen on threads of the library.

extension TypedCache {
    /// The value of `key`, or nil for a miss.
    ///
    /// A hit in memory doesn't change threads.
    public func get(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheHit<Value>? {
        try await cache.find(key, codec, reading)
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
