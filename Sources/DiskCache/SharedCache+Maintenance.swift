// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension SharedCache {
    /// Removes every value that was stored before this call, or those of a selection.
    ///
    /// This is how to empty a directory that is in use. For all keys, a prefix or a tag it is one step, however many they
    /// are: before it every process finds them, after it none does, whatever it has in memory. The next collection
    /// reclaims the space and counts the deleted values (``RemovalReason/cleared``). A value that another process stores
    /// meanwhile may be removed or stay; one that it has accepted and not yet written
    /// (``CacheConfiguration/Writing/behind``) stays.
    ///
    /// Keys that match a pattern (``KeySelection/glob(_:)``) are looked for and removed one by one, and so are all values
    /// if the directory has no control file, if it was made anew and no collection has looked at all keys since, or if
    /// the file of rules can't be written, as on a full disk. If 64 different selections were made to expire and have values
    /// that are still available as stale ones, the next call writes new metadata for these first, and collects.
    ///
    /// - Parameter selection: which keys. A key that the cache does not know counts as one with any prefix.
    /// - Throws: ``CacheError``; some of the values may then be removed.
    /// - Complexity: some 30 system calls and a pass over 2 MiB of memory; O(*n*) in all keys where they go one by one.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func removeAll(_ selection: KeySelection = .all) throws(CacheError) {
        try publishAll()
        try withStore { (store, now) throws(CacheError) in
            if store.enact(.remove, selection, now: now) { return }
            try remove(selection, oneByOneFrom: store)
        }
        if selection == .all { core.memory?.removeAll(cause: .explicit) }
    }

    /// Has every value that was stored before this call expire, or those of a selection, and keeps them available as stale
    /// values.
    ///
    /// One step, like ``removeAll(_:)``, and within the same limits. Values that have expired before stay as they are.
    ///
    /// - Parameters:
    ///   - selection: which keys. A key that the cache does not know counts as one with any prefix.
    ///   - staleFor: how long they are available as stale values, in place of their own stale period
    ///     (``PutOptions/staleFor``), rounded down to the millisecond; nil leaves that as it is.
    /// - Throws: ``CacheError``; some of the values may then have expired.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func expireAll(_ selection: KeySelection, staleFor: Duration? = nil) throws(CacheError) {
        if let staleFor { try Self.checkStalePeriod(staleFor) }
        try publishAll()
        try withStore { (store, now) throws(CacheError) in
            if store.enact(.expire(staleFor: staleFor), selection, now: now) { return }
            var failure: CacheError?
            for shard in 0..<StoreLayout.shardCount {
                for key in try store.parts.digests(.entries, shard: shard).digests {
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

    /// Runs `body` for one of many keys; keeps the first error that concerns that key alone, so that the others come first.
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
        let log = store.parts.log
        // An entry without a valid record is removed only with all others.
        let isMeant = { (stored: StoredEntry) in
            stored.record.map { selection.mayInclude($0) } ?? (selection == .all)
        }
        var failure: CacheError?
        for shard in 0..<StoreLayout.shardCount {
            var removed: [LoggedKey] = []
            defer { log?.append(removed, cause: .cleared) }
            for key in try store.parts.digests(.entries, shard: shard).digests {
                try passing(&failure) { () throws(CacheError) in
                    // The entry is looked at again under its lock: a value that has got other terms meanwhile goes too.
                    guard let (stored, _) = try store.parts.entry(key), isMeant(stored),
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
