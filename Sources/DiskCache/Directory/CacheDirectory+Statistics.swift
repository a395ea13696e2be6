// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension CacheDirectory {
    /// Counts the contents of the cache, and returns them with its use by this process and by all processes, and the last
    /// collection.
    ///
    /// - Parameter selection: the keys to count, with their values. Unreadable entries, and values that no key refers to,
    ///   are counted only if all keys are selected.
    /// - Complexity: O(*n*) in keys and values: two system calls per key and one per value; 32 bytes of memory per value of
    ///   a selection, none for all keys.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func statistics(_ selection: KeySelection = .all) throws(CacheError) -> CacheStatistics {
        try withStore { (store, now) throws(CacheError) in
            var statistics = CacheStatistics()
            var named: Set<Digest> = []
            for shard in 0..<StoreLayout.shardCount {
                for key in try store.digests(.entries, shard: shard).digests {
                    let entry: (stored: StoredEntry, status: FileStatus)?
                    do throws(CacheError) {
                        entry = try store.entry(key)
                    } catch {
                        guard error.concernsOneFile else { throw error }
                        if selection == .all { statistics.unreadableEntries += 1 }
                        continue
                    }
                    guard let (stored, status) = entry else {
                        // The file of an entry that a removal rule has removed stays until a collection deletes it.
                        let status = selection == .all ? try store.directory.status(of: key, .entries) : nil
                        if let status, status.kind == .regular {
                            statistics.entryBytes += status.allocatedSize
                        }
                        continue
                    }
                    if selection != .all {
                        guard let record = stored.record, selection.includes(record) else { continue }
                        named.insert(record.content.digest)
                    }
                    statistics.count(stored, status, now)
                }
            }
            for shard in 0..<StoreLayout.shardCount {
                for digest in try store.digests(.objects, shard: shard).digests {
                    guard selection == .all || named.contains(digest),
                        let object = try store.object(digest)
                    else { continue }
                    statistics.objects += 1
                    statistics.objectBytes += object.allocatedSize
                }
            }
            statistics.overheadBytes = try describing("look at", store.directory.path) { () throws(Errno) in
                try store.directory.ownFiles().reduce(0) { $0 + $1.status.allocatedSize }
            }
            statistics.activity = activity
            statistics.totals = CacheStatistics.Totals(of: store)
            let last = SweepRecord.last(in: store.directory)
            statistics.lastCollection = last.map { CacheStatistics.LastCollection($0) }
            return statistics
        }
    }

    /// The use of the cache by this process.
    ///
    /// No system call.
    public var activity: CacheActivity { cache.core.activity }

    /// Returns the counts of all processes, and the disk usage of the cache; nil without a control file.
    ///
    /// No system call.
    ///
    /// - Throws: ``CacheError``, only with the code `closed`.
    public func totals() throws(CacheError) -> CacheStatistics.Totals? {
        try withStore { (store, _) throws(CacheError) in CacheStatistics.Totals(of: store) }
    }

    /// Resets the counts of all processes together to 0.
    ///
    /// Each process's own counts (``activity``) are unchanged. Counts that another process adds at the same moment may be
    /// lost. No system call.
    ///
    /// - Returns: false if there is no control file that this process can write.
    /// - Throws: ``CacheError``, only with the code `closed`.
    @discardableResult
    public func resetTotals() throws(CacheError) -> Bool {
        try withStore { (store, now) throws(CacheError) in store.control.resetCounters(now: now) }
    }

    /// Returns what the last collection by any process did or, while one is running, has recorded so far; nil if there was
    /// none, or its record is lost.
    ///
    /// Takes no lock. About six system calls.
    ///
    /// - Throws: ``CacheError``, only with the code `closed`.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func lastCollection() throws(CacheError) -> CacheStatistics.LastCollection? {
        try withStore { (store, _) throws(CacheError) in
            SweepRecord.last(in: store.directory).map { CacheStatistics.LastCollection($0) }
        }
    }
}

extension CacheStatistics {
    fileprivate mutating func count(_ stored: StoredEntry, _ status: FileStatus, _ now: Timestamp) {
        entryBytes += status.allocatedSize
        guard let record = stored.record else {
            unreadableEntries += 1
            return
        }
        entries += 1
        // A damaged record may claim any length.
        let (sum, overflow) = logicalBytes.addingReportingOverflow(Int64(record.content.length))
        logicalBytes = overflow ? .max : sum
        if stored.freshness(at: now, accessed: status.accessed) != .fresh { expiredEntries += 1 }
        let lastUse = record.lastUse(accessed: status.accessed, now: now).date
        oldestAccess = min(oldestAccess ?? lastUse, lastUse)
    }
}
