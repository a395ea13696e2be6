// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

extension SharedCache {
    /// Returns the value of `key`, or nil if it is absent, expired, or damaged on disk.
    ///
    /// Takes no lock on disk and waits for no other process. If this process has a copy in memory and the key has not been
    /// written since, a hit takes no system call. Otherwise it takes three; four if this process has not read the key before
    /// or the key has changed since; and one or two more when its access is due to be recorded. A miss takes none if the key
    /// was never put, or if this process has missed it before and it has not been written since; otherwise one. (Kernels
    /// before 6.13 need two more for a hit that takes four, and for a miss that reads the disk.)
    ///
    /// Remote servers, if configured, are asked last, within their time limit.
    ///
    /// - Parameter key: any non-empty string.
    /// - Throws: ``CacheError`` if the directory cannot be read.
    public func get(forKey key: String) throws(CacheError) -> CacheHit<Data>? {
        // A separate overload: a hit in memory is so short that creating the default options would be measurable.
        if let hit = try findHere(key, BytesCodec(), acceptsStale: false) { return hit }
        return remote == nil ? nil : findRemotely(key, BytesCodec())
    }

    /// Returns the value of `key`, or nil if there is no value that `reading` accepts.
    ///
    /// Otherwise like the form without options, with the same number of system calls.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - reading: whether a stale value is acceptable, its maximum age, and where to look.
    /// - Throws: ``CacheError`` if the directory cannot be read.
    public func get(forKey key: String, reading: ReadOptions) throws(CacheError) -> CacheHit<Data>? {
        try find(key, BytesCodec(), reading)
    }

    /// The value of `key`, or nil for a miss, as returned by `get(forKey:)`.
    ///
    /// ```swift
    /// let thumb = try cache["user:1/thumb"]
    /// ```
    ///
    /// - Throws: ``CacheError`` if the directory cannot be read.
    @available(*, noasync, message: "it waits for the disk: use `get(forKey:)`")
    public subscript(key: String) -> Data? {
        get throws(CacheError) { try self.get(forKey: key)?.value }
    }

    /// Returns the metadata of `key` without reading the value or recording an access; nil if a get would miss.
    ///
    /// Three system calls. If a put of this key by this process is waiting to be published, it is published first. With
    /// ``ReadOptions/Source/memory`` this performs a get, and counts as one.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheEntry? {
        if reading.source == .memory { return try get(forKey: key, reading: reading)?.entry }
        return try publishedEntry(settledDigest(ofKey: key), key, reading)
    }

    /// Returns the metadata of `digest` on disk, without waiting for queued puts; nil for a miss.
    func publishedEntry(
        _ digest: Digest,
        _ key: String,
        _ reading: ReadOptions
    ) throws(CacheError) -> CacheEntry? {
        try withStore { (store, now) throws(CacheError) in
            guard let live = try store.liveEntry(digest, now: now, allowingStale: reading.acceptsStale),
                !live.record.isOlder(than: reading.oldest(at: now)),
                let status = try store.directory.status(of: digest, .entries)
            else { return nil }
            return CacheEntry(
                live.record,
                keyDigest: digest,
                key: key,
                accessed: status.accessed,
                now: now
            )
        }
    }

    /// Returns whether there is an unexpired value for `key`.
    ///
    /// Two system calls, one if there is no entry, and none for most keys that were never put. The value exists and has the
    /// right length, but its bytes are not read: if they are damaged, a get misses.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func contains(forKey key: String) throws(CacheError) -> Bool {
        try isPublished(settledDigest(ofKey: key))
    }

    /// Returns whether `digest` has a value on disk, without waiting for queued puts.
    func isPublished(_ digest: Digest, allowingStale: Bool = false) throws(CacheError) -> Bool {
        try withStore { (store, now) throws(CacheError) in
            try store.liveEntry(digest, now: now, allowingStale: allowingStale) != nil
        }
    }

    /// Returns whether a get of `key` may find a value; never waits, and does not count as a miss.
    func isWorthGetting(_ key: String, allowingStale: Bool = false) throws(CacheError) -> Bool {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        if writeBehind.latest({ digest }) != nil { return true }
        // The value may be in memory only.
        if core.memory?.contains(key, in: space) ?? false { return true }
        return try isPublished(digest, allowingStale: allowingStale)
    }

    /// Returns all unexpired entries, or those of a selection, in no particular order.
    ///
    /// The sequence reads one shard at a time. Entries that other processes add or remove meanwhile may or may not be
    /// included. An element is a failure if a part of the directory could not be read.
    ///
    /// - Parameter selection: the keys. A key that the cache does not know matches no prefix.
    /// - Complexity: O(*n*) in all keys, whatever is selected: neither prefixes nor tags are indexed.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func entries(
        _ selection: KeySelection = .all
    ) throws(CacheError) -> some Sequence<Result<CacheEntry, CacheError>> & Sendable {
        try publishAll()
        return try withStore { (store, now) throws(CacheError) in
            CacheEntries(store: store, now: now, selection: selection)
        }
    }
}

/// The entries of a cache, read from disk shard by shard during iteration.
struct CacheEntries: Sequence, IteratorProtocol, Sendable {
    let store: Store
    let now: Timestamp
    let selection: KeySelection
    var shard = 0
    var keys: [Digest] = []

    /// Returns the next entry, or the reason why it could not be read; nil at the end.
    mutating func next() -> Result<CacheEntry, CacheError>? {
        do throws(CacheError) {
            while true {
                while let key = keys.popLast() {
                    if let entry = try entry(key) { return .success(entry) }
                }
                guard shard < StoreLayout.shardCount else { return nil }
                // Incremented first, so that an unreadable shard is reported once and skipped.
                shard += 1
                keys = try store.digests(.entries, shard: shard - 1).digests
            }
        } catch {
            return .failure(error)
        }
    }

    private func entry(_ key: Digest) throws(CacheError) -> CacheEntry? {
        guard let (stored, status) = try store.entry(key), let record = stored.record, !record.isNothing,
            selection.includes(record), stored.freshness(at: now, accessed: status.accessed) == .fresh
        else { return nil }
        return CacheEntry(record, keyDigest: key, key: nil, accessed: status.accessed, now: now)
    }
}
