// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

// Asking remote servers for many keys takes no longer than asking for one: all keys share one deadline.

extension SharedCache {
    /// Returns the values that a get finds for these keys.
    ///
    /// Each key must occur only once.
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

    /// Returns the values that this machine has.
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

    /// Returns the values that remote servers return before `end`, the deadline of all keys together.
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

    /// The maximum time to ask remote servers; nil if they are not asked.
    private func askingLimit(_ reading: ReadOptions) -> Duration? {
        reading.mayAskRemote ? remote?.tier.limit : nil
    }

    /// Returns the values that a get finds for these keys, without blocking the task's thread.
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
        // Not on a thread for disk reads: other reads of this machine's disk would then wait for the network.
        let end = ContinuousClock.now + limit
        let found = await offloadIfFree(on: .asking) {
            self.findRemotely(absent, codec, reading, until: end)
        }
        hits.merge(found ?? [:]) { here, _ in here }
        return hits
    }
}
