// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

extension SharedCache {
    /// The value of `key`, or nil if there is none, it has expired, or it was damaged on disk.
    ///
    /// Takes no lock on disk and waits for no other process. If this process has a copy in memory that nobody
    /// has changed since, a hit takes no system call. Otherwise it takes three, or four if this process hasn't
    /// read the key before or it has changed since, and one or two more when its access is due to be recorded.
    /// A miss takes none if the key was never put, or if this process has missed it before and nobody has
    /// written it since; otherwise one. (Kernels before 6.13 need two more where there are four, and for a miss
    /// that asks the disk.)
    ///
    /// With servers to share values through, these are asked last, which takes no longer than the limit for
    /// that.
    ///
    /// - Parameter key: any string but the empty one.
    /// - Throws: ``CacheError`` if the directory can't be read.
    public func get(forKey key: String) throws(CacheError) -> CacheHit<Data>? {
        // A form of its own: a hit in memory is so short that making the default options would show in it.
        if let hit = try find(key, BytesCodec(), allowingStale: false) { return hit }
        return remote == nil ? nil : findRemotely(key, BytesCodec())
    }

    /// The value of `key`, or nil if there is none that `reading` accepts.
    ///
    /// Otherwise like the form without options, at the same cost in system calls.
    ///
    /// - Parameters:
    ///   - key: any string but the empty one.
    ///   - reading: whether a stale value will do, how old it may be, and whether to look in memory alone.
    /// - Throws: ``CacheError`` if the directory can't be read.
    public func get(forKey key: String, reading: ReadOptions) throws(CacheError) -> CacheHit<Data>? {
        try find(key, BytesCodec(), reading)
    }

    /// The value of `key`, or nil for a miss: what `get(forKey:)` finds.
    ///
    /// ```swift
    /// let thumb = try cache["user:1/thumb"]
    /// ```
    ///
    /// - Throws: ``CacheError`` if the directory can't be read.
    @available(*, noasync, message: "it waits for the disk: use `get(forKey:)`")
    public subscript(key: String) -> Data? {
        get throws(CacheError) { try self.get(forKey: key)?.value }
    }

    /// What the cache knows about `key`, without reading the value or counting as an access; nil if a get would
    /// miss.
    ///
    /// Three system calls. If a put of this key by this process is waiting to be published, that is done first. Where
    /// only memory is to be looked at (``ReadOptions/Source/memory``), this is the entry of a get, and counts as one.
    public func entry(
        forKey key: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheEntry? {
        if reading.source == .memory { return try get(forKey: key, reading: reading)?.entry }
        return try publishedEntry(settledDigest(ofKey: key), key, reading)
    }

    /// The same as far as it is on disk: waits for nobody.
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

    /// Whether there is a value for `key` that has not expired.
    ///
    /// Two system calls, one if there is no entry, and none for most keys that were never put. The value exists
    /// and has the right length, but its bytes are not read: if they are damaged, a get misses.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func contains(forKey key: String) throws(CacheError) -> Bool {
        try isPublished(settledDigest(ofKey: key))
    }

    /// The same as far as it is on disk: waits for nobody.
    func isPublished(_ digest: Digest, allowingStale: Bool = false) throws(CacheError) -> Bool {
        try withStore { (store, now) throws(CacheError) in
            try store.liveEntry(digest, now: now, allowingStale: allowingStale) != nil
        }
    }

    /// Whether a get of `key` may find something; waits for nobody, and doesn't count as a miss.
    func isWorthGetting(_ key: String, allowingStale: Bool = false) throws(CacheError) -> Bool {
        let digest = try digest(ofKey: key)
        try core.checkOpen()
        if writeBehind.latest({ digest }) != nil { return true }
        // It may be there alone.
        if core.memory?.contains(key, in: space) ?? false { return true }
        return try isPublished(digest, allowingStale: allowingStale)
    }

    /// All entries that have not expired, or those of a selection, in no particular order, read a shard at a time as the
    /// sequence goes.
    ///
    /// What other processes add or remove meanwhile may or may not be included. An element is a failure if a
    /// part of the directory could not be read.
    ///
    /// - Parameter selection: which keys. A key that the cache does not know has no prefix.
    /// - Complexity: O(*n*) in all keys, whatever is selected: neither prefixes nor tags are indexed.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func entries(
        _ selection: KeySelection = .all
    ) throws(CacheError) -> some Sequence<Result<CacheEntry, CacheError>> & Sendable {
        try publishAll()
        return try withStore { (store, now) throws(CacheError) in
            CacheEntries(parts: store.parts, now: now, selection: selection)
        }
    }
}

/// The entries of a cache, from the first shard on, read from disk as it goes.
struct CacheEntries: Sequence, IteratorProtocol, Sendable {
    let parts: StoreParts
    let now: Timestamp
    let selection: KeySelection
    var shard = 0
    var keys: [Digest] = []

    /// The next entry, or why it could not be read; nil at the end.
    mutating func next() -> Result<CacheEntry, CacheError>? {
        do throws(CacheError) {
            while true {
                while let key = keys.popLast() {
                    if let entry = try entry(key) { return .success(entry) }
                }
                guard shard < StoreLayout.shardCount else { return nil }
                // Counted first: a shard that can't be read is reported once and passed over.
                shard += 1
                keys = try parts.digests(.entries, shard: shard - 1).digests
            }
        } catch {
            return .failure(error)
        }
    }

    private func entry(_ key: Digest) throws(CacheError) -> CacheEntry? {
        guard let (stored, status) = try parts.entry(key), let record = stored.record, !record.isNothing,
            selection.includes(record), stored.freshness(at: now, accessed: status.accessed) == .fresh
        else { return nil }
        return CacheEntry(record, keyDigest: key, key: nil, accessed: status.accessed, now: now)
    }
}
