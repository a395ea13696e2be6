// SPDX-License-Identifier: Apache-2.0

import CacheStore

// The asynchronous form of each call: coding and system calls happen on threads of ours.

extension TypedCache {
    /// The value of `key`, or nil for a miss.
    ///
    /// From memory without a change of thread.
    public func get(_ key: String, allowingStale: Bool = false) async throws(CacheError) -> TypedHit<Value>? {
        // Without a control file even a hit in memory asks the disk.
        if cache.core.store.hasGenerations, let hit = try memoryHit(key) { return hit }
        return try await offload(on: .reading) { () throws(CacheError) in
            try self.get(key, allowingStale: allowingStale)
        }
    }

    /// Stores a value, replacing what was there.
    public func put(
        _ value: Value,
        forKey key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes(),
        writing: WritePolicy? = nil
    ) async throws(CacheError) {
        try await offload { () throws(CacheError) in
            try self.put(
                value,
                forKey: key,
                expires: expires,
                onAccess: onAccess,
                attributes: attributes,
                writing: writing
            )
        }
    }

    /// Removes the value of `key`, whatever its type; false: there was none.
    @discardableResult
    public func remove(_ key: String) async throws(CacheError) -> Bool {
        try await cache.remove(key)
    }
}
