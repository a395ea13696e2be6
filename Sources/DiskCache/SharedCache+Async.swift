// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

// The asynchronous form of each call: the same promises, with the system calls on threads of ours.
// In asynchronous code these are preferred to the synchronous ones of the same name.

extension SharedCache {
    /// Opens the cache at `path`; see ``init(at:configuration:)``.
    public static func open(
        at path: String,
        configuration: CacheConfiguration = CacheConfiguration()
    ) async throws(CacheError) -> SharedCache {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try SharedCache(at: path, configuration: configuration)
        }
    }

    /// The value of `key`, or nil for a miss.
    ///
    /// From memory without a change of thread.
    public func get(_ key: String, allowingStale: Bool = false) async throws(CacheError) -> CacheHit? {
        // Without a control file even a hit in memory asks the disk.
        if core.store.hasGenerations {
            switch try memoryHit(key, allowingStale: allowingStale) {
            case .hit(let hit): return hit
            case .miss: return nil
            case .unsettled, .unknown: break
            }
        }
        return try await offload(on: .reading) { () throws(CacheError) in
            try self.get(key, allowingStale: allowingStale)
        }
    }

    /// What the cache knows of `key`, or nil for a miss.
    public func entry(
        forKey key: String,
        allowingStale: Bool = false
    ) async throws(CacheError) -> CacheEntry? {
        let digest = try digest(ofKey: key)
        try await settle(digest)
        return try await offload(on: .reading) { () throws(CacheError) in
            try self.publishedEntry(digest, key, allowingStale: allowingStale)
        }
    }

    /// Whether there is an entry for `key` that has not expired.
    public func contains(_ key: String) async throws(CacheError) -> Bool {
        let digest = try digest(ofKey: key)
        try await settle(digest)
        return try await offload(on: .reading) { () throws(CacheError) in try self.isPublished(digest) }
    }

    /// The content with this digest, or nil.
    public func data(for digest: ContentDigest) async throws(CacheError) -> Data? {
        try await settle(Digest(ofKey: digest.description))
        return try await offload(on: .reading) { () throws(CacheError) in try self.publishedData(for: digest)
        }
    }

    /// Has what waits to be published of a key published: the only thing that a read may have to wait for, and mostly
    /// there is none.
    private func settle(_ key: Digest) async throws(CacheError) {
        try core.checkOpen()
        guard writeBehind.isPending(key) else { return }
        await offload { self.writeBehind.settle(key) }
    }

    /// Stores `data` under `key`.
    ///
    /// With ``WritePolicy/behind`` without a change of thread, unless the queue is full.
    public func put(
        _ data: Data,
        forKey key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes(),
        writing: WritePolicy? = nil
    ) async throws(CacheError) {
        if (writing ?? configuration.writing) == .behind {
            let terms = Terms(expires: expires, onAccess: onAccess, attributes: attributes)
            if writeBehind.tryPut(try pendingWrite(data, forKey: key, terms)) { return }
        }
        try await offload { () throws(CacheError) in
            try self.put(
                data,
                forKey: key,
                expires: expires,
                onAccess: onAccess,
                attributes: attributes,
                writing: writing
            )
        }
    }

    /// Stores bytes under `key`.
    public func put(
        _ bytes: [UInt8],
        forKey key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes(),
        writing: WritePolicy? = nil
    ) async throws(CacheError) {
        try await put(
            Data(bytes),
            forKey: key,
            expires: expires,
            onAccess: onAccess,
            attributes: attributes,
            writing: writing
        )
    }

    /// Stores a string's UTF-8 bytes under `key`.
    public func put(
        _ string: String,
        forKey key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes(),
        writing: WritePolicy? = nil
    ) async throws(CacheError) {
        try await put(
            Data(string.utf8),
            forKey: key,
            expires: expires,
            onAccess: onAccess,
            attributes: attributes,
            writing: writing
        )
    }

    /// Waits until all puts so far are published; false where `limit` passed first.
    @discardableResult
    public func flush(within limit: Duration? = nil) async -> Bool {
        await offload(on: .lengthy) { self.flush(within: limit) }
    }

    /// Stores `data` unless there is a value for `key` already.
    ///
    /// True: it was stored.
    public func putIfAbsent(
        _ data: Data,
        forKey key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes()
    ) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in
            try self.putIfAbsent(
                data,
                forKey: key,
                expires: expires,
                onAccess: onAccess,
                attributes: attributes
            )
        }
    }

    /// Replaces the value of `key` by what `transform` makes of it, atomically across processes.
    @discardableResult
    public func update(
        _ key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes(),
        _ transform: @escaping @Sendable (Data?) throws -> Data?
    ) async throws -> Data? {
        try await offload(on: .lengthy) {
            try self.update(
                key,
                expires: expires,
                onAccess: onAccess,
                attributes: attributes,
                transform
            )
        }
    }

    /// Stores content under its own digest.
    @discardableResult
    public func store(_ data: Data, expires: Expiration? = nil) async throws(CacheError) -> ContentDigest {
        try await offload { () throws(CacheError) in try self.store(data, expires: expires) }
    }

    /// Stores a file's bytes under `key`.
    @discardableResult
    public func put(
        contentsOfFile path: String,
        forKey key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes()
    ) async throws(CacheError) -> CacheEntry {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.put(
                contentsOfFile: path,
                forKey: key,
                expires: expires,
                onAccess: onAccess,
                attributes: attributes
            )
        }
    }

    /// Stores what can be read from an open descriptor under `key`.
    @discardableResult
    public func put(
        contentsOfDescriptor descriptor: Int32,
        forKey key: String,
        expires: Expiration? = nil,
        onAccess: AccessExtension? = nil,
        attributes: EntryAttributes = EntryAttributes()
    ) async throws(CacheError) -> CacheEntry {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.put(
                contentsOfDescriptor: descriptor,
                forKey: key,
                expires: expires,
                onAccess: onAccess,
                attributes: attributes
            )
        }
    }

    /// Copies the value of `key` to a file; nil for a miss.
    @discardableResult
    public func copyValue(
        forKey key: String,
        toFile path: String,
        allowingStale: Bool = false
    ) async throws(CacheError) -> CacheEntry? {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.copyValue(forKey: key, toFile: path, allowingStale: allowingStale)
        }
    }

    /// Writes the value of `key` to an open descriptor; nil for a miss.
    @discardableResult
    public func copyValue(
        forKey key: String,
        toDescriptor descriptor: Int32,
        allowingStale: Bool = false
    ) async throws(CacheError) -> CacheEntry? {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.copyValue(forKey: key, toDescriptor: descriptor, allowingStale: allowingStale)
        }
    }

    /// Removes the value of `key`.
    ///
    /// False: there was none.
    @discardableResult
    public func remove(_ key: String) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in try self.remove(key) }
    }

    /// Counts as an access of `key` now.
    ///
    /// False: a get would miss.
    @discardableResult
    public func touch(_ key: String) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in try self.touch(key) }
    }

    /// Gives the value of `key` another expiration.
    ///
    /// False: a get would miss.
    @discardableResult
    public func setExpiration(
        of key: String,
        to expires: Expiration,
        onAccess: AccessExtension = .keep
    ) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in
            try self.setExpiration(of: key, to: expires, onAccess: onAccess)
        }
    }
}
