// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension SharedCache {
    /// Returns the unexpired entries of a selection, in no particular order.
    ///
    /// The sequence reads one shard at a time. Entries that other processes add or remove meanwhile may or may not be
    /// included. An element is a failure if a part of the directory could not be read.
    ///
    /// - Parameter selection: the keys to include. An entry whose key is not stored with it matches no prefix.
    /// - Complexity: O(*n*) in the number of all keys, whatever is selected: neither prefixes nor tags are indexed.
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
private struct CacheEntries: Sequence, IteratorProtocol, Sendable {
    let store: Store
    let now: Timestamp
    let selection: KeySelection
    var shard = 0
    var keys: [Digest] = []

    /// Returns the next entry, or the error that prevented reading it; nil at the end.
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
