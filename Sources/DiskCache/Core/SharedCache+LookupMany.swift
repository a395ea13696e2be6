// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

// Remote servers are asked for all keys together no longer than for one.

extension SharedCache {
    /// Returns the values of these keys, each of which occurs once, that a get finds.
    func find<Codec: CacheCodec>(
        _ keys: [String],
        _ codec: Codec,
        _ reading: ReadOptions
    ) throws(CacheError) -> [String: CacheHit<Codec.Value>] {
        var hits = try findHere(keys, codec, reading)
        if let limit = askingLimit(reading) {
            let absent = keys.filter { hits[$0] == nil }
            let found = findRemotely(absent, codec, reading, until: .now + limit)
            hits.merge(found) { here, _ in here }
        }
        return hits
    }

    /// Returns this machine's values.
    private func findHere<Codec: CacheCodec>(
        _ keys: [String],
        _ codec: Codec,
        _ reading: ReadOptions
    ) throws(CacheError) -> [String: CacheHit<Codec.Value>] {
        let here = reading.withoutOthers
        var hits: [String: CacheHit<Codec.Value>] = [:]
        for key in keys { hits[key] = try find(key, codec, here) }
        return hits
    }

    /// Returns the values that remote servers return before `end`: for all keys no longer than for one.
    private func findRemotely<Codec: CacheCodec>(
        _ keys: [String],
        _ codec: Codec,
        _ reading: ReadOptions,
        until end: ContinuousClock.Instant
    ) -> [String: CacheHit<Codec.Value>] {
        var hits: [String: CacheHit<Codec.Value>] = [:]
        for key in keys {
            guard let hit = findRemotely(key, codec, until: end) else { continue }
            if !hit.isOlder(than: reading.oldest(at: now)) { hits[key] = hit }
        }
        return hits
    }

    /// The maximum time for asking remote servers; nil if they are not asked.
    private func askingLimit(_ reading: ReadOptions) -> Duration? {
        reading.mayAskRemote ? remote?.tier.limit : nil
    }

    /// Returns the values that a get finds, without blocking the task's thread.
    func find<Codec: CacheCodec>(
        _ keys: [String],
        _ codec: Codec,
        _ reading: ReadOptions
    ) async throws(CacheError) -> [String: CacheHit<Codec.Value>] {
        var hits = try await offload(on: .reading) { () throws(CacheError) in
            try self.findHere(keys, codec, reading)
        }
        let absent = keys.filter { hits[$0] == nil }
        guard let limit = askingLimit(reading), !absent.isEmpty else { return hits }
        // Not on a reading thread: reads of this disk would wait for the network.
        let end = ContinuousClock.now + limit
        let found = await offloadIfFree(on: .asking) {
            self.findRemotely(absent, codec, reading, until: end)
        }
        hits.merge(found ?? [:]) { here, _ in here }
        return hits
    }
}
