// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension SharedCache {
    /// Removes all values that were stored before this call, or those of a selection.
    ///
    /// Use this to empty a directory that is in use. For all keys, a prefix or a tag the removal is a single atomic step,
    /// regardless of the number of keys: before it every process finds the values, after it no process does, not even in
    /// its memory. The next collection reclaims the space and counts the deleted values (``RemovalReason/cleared``). A
    /// value that another process stores meanwhile may be removed or stay; one that is still in another process's
    /// write-behind queue (``CacheConfiguration/Writing/behind``) stays.
    ///
    /// Keys that match a pattern (``KeySelection/glob(_:)``) are found and removed one at a time. The same applies to every
    /// selection if the directory has no control file, if the control file was recreated and no collection has scanned all
    /// keys since, or if the file of removal rules cannot be written, as on a full disk. If 64 different selections have
    /// been expired and still have values that are available as stale ones, the next call first writes new metadata for
    /// these values, and collects.
    ///
    /// - Parameter selection: the keys. A key that the cache does not know matches every prefix.
    /// - Throws: ``CacheError``; some of the values may then have been removed.
    /// - Complexity: about 30 system calls and a pass over 2 MiB of memory; O(*n*) in all keys if they are removed one at a
    ///   time.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func removeAll(_ selection: KeySelection = .all) throws(CacheError) {
        try publishAll()
        try withStore { (store, now) throws(CacheError) in
            if store.enact(.remove, selection, now: now) { return }
            try remove(selection, oneByOneFrom: store)
        }
        if selection == .all { core.memory?.removeAll(cause: .explicit) }
    }

    /// Expires all values of a selection that were stored before this call, and keeps them available as stale values.
    ///
    /// A single atomic step under the same conditions as ``removeAll(_:)``. Values that have already expired are unchanged.
    ///
    /// - Parameters:
    ///   - selection: the keys. A key that the cache does not know matches every prefix.
    ///   - staleFor: how long the values stay available as stale ones, instead of their own stale period
    ///     (``PutOptions/staleFor``), rounded down to the millisecond; nil keeps their own.
    /// - Throws: ``CacheError``; some of the values may then have expired.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func expireAll(_ selection: KeySelection, staleFor: Duration? = nil) throws(CacheError) {
        if let staleFor { try Self.checkStalePeriod(staleFor) }
        try publishAll()
        try withStore { (store, now) throws(CacheError) in
            if store.enact(.expire(staleFor: staleFor), selection, now: now) { return }
            var failure: CacheError?
            for shard in 0..<StoreLayout.shardCount {
                for key in try store.digests(.entries, shard: shard).digests {
                    try passing(&failure) { () throws(CacheError) in
                        var backoff = Backoff()
                        while try !store.expire(
                            key,
                            staleFor: staleFor,
                            now: now,
                            where: { selection.mayInclude($0) }
                        ) {
                            sleepThread(for: backoff.next())
                        }
                    }
                }
            }
            // A value that was evicted from disk may still be in the memory of any process.
            try store.control.raiseAll()
            if let failure { throw failure }
        }
    }

    /// Runs `body` for one of many keys; records the first error that concerns only one key, so that the other keys are
    /// still processed.
    private func passing(
        _ failure: inout CacheError?,
        _ body: () throws(CacheError) -> Void
    ) throws(CacheError) {
        do throws(CacheError) {
            try body()
        } catch {
            guard error.concernsOneFile else { throw error }
            failure = failure ?? error
        }
    }

    private func remove(_ selection: KeySelection, oneByOneFrom store: Store) throws(CacheError) {
        let log = store.eventLog
        // An entry without a valid record is removed only if the selection is all keys.
        let isMeant = { (stored: StoredEntry) in
            stored.record.map { selection.mayInclude($0) } ?? (selection == .all)
        }
        var failure: CacheError?
        for shard in 0..<StoreLayout.shardCount {
            var removed: [LoggedKey] = []
            defer { log?.append(removed, cause: .cleared) }
            for key in try store.digests(.entries, shard: shard).digests {
                try passing(&failure) { () throws(CacheError) in
                    // `remove` checks the entry again under its lock: a value whose options have changed meanwhile is
                    // removed too.
                    guard let (stored, _) = try store.entry(key), isMeant(stored),
                        let gone = try store.remove(key, where: { $0.map(isMeant) ?? false }).removed
                    else { return }
                    if log != nil { removed.append(LoggedKey(digest: key, name: gone.record?.key)) }
                }
            }
        }
        // A value that was evicted from disk may still be in the memory of any process.
        try store.control.raiseAll()
        if let failure { throw failure }
    }
}
