// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials

/// The values of a cache, encoded by a codec, under their full keys: the implementation of views.
struct CodecSource<Codec: CacheCodec>: FlightSource {
    let cache: SharedCache
    let codec: Codec

    func get(
        forKey key: String,
        reading: ReadOptions
    ) throws(CacheError) -> CacheHit<Codec.Value>? {
        try cache.find(key, codec, reading)
    }

    func get(
        forKey key: String,
        reading: ReadOptions
    ) async throws(CacheError) -> CacheHit<Codec.Value>? {
        try await cache.find(key, codec, reading)
    }

    /// Stores a value, encoded on disk and as it is in memory, according to the options.
    func put(_ value: Codec.Value, forKey key: String, _ options: PutOptions) throws(CacheError) {
        if let data = bytes(value) { return try cache.put(data, forKey: key, options: options) }
        if cache.waitsForNobody(options) {
            return try cache.put(encode(value, forKey: key), forKey: key, options: options)
        }
        if cache.keepsInMemoryAlone(options) {
            _ = try cache.keepInMemory(value, forKey: key, codec, options, isComputed: false)
            return
        }
        _ = try keep(value, forKey: key, options, SpaceWait())
    }

    /// Stores a value without blocking the thread: encoding and system calls happen on library threads.
    func put(_ value: Codec.Value, forKey key: String, _ options: PutOptions) async throws(CacheError) {
        if let data = bytes(value) { return try await cache.put(data, forKey: key, options: options) }
        try await offload { () throws(CacheError) in try self.put(value, forKey: key, options) }
    }

    func keep(
        _ value: Codec.Value,
        forKey key: String,
        _ options: PutOptions,
        _ wait: SpaceWait
    ) throws(CacheError) -> MemoryValue<Codec.Value> {
        if let data = bytes(value),
            let held = try cache.keep(data, forKey: key, options, wait) as MemoryEntry
                as? MemoryValue<Codec.Value>
        {
            return held
        }
        if cache.keepsInMemoryAlone(options) {
            return try cache.keepInMemory(value, forKey: key, codec, options, isComputed: true)
        }
        let data = try encode(value, forKey: key)
        let cost = cache.memoryCost(options) ?? codec.cost(of: value, encodedSize: data.count)
        return try cache.keep(value, form, encoded: data, forKey: key, cost: cost, options, wait)
    }

    /// Encodes a value.
    func encode(_ value: Codec.Value, forKey key: String) throws(CacheError) -> Data {
        do {
            return try codec.encode(value)
        } catch {
            throw CacheError(.encoding, "store \(key): \(error): give a value that its codec can encode")
        }
    }

    /// Returns the value itself if it is bytes, which need no code of the program; otherwise nil.
    private func bytes(_ value: Codec.Value) -> Data? {
        Codec.self == BytesCodec.self ? value as? Data : nil
    }
}
