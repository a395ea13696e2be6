// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension SharedCache {
    /// Removes what nobody needs any more, and what exceeds the limits.
    ///
    /// Safe beside any number of readers, writers and other collections, none of which waits for it. If it is
    /// killed, the next one does the rest. Only one collection runs at a time: this waits for those of other
    /// processes.
    ///
    /// - Parameters:
    ///   - options: limits, and what to leave alone.
    ///   - progress: called now and then, on the calling thread.
    /// - Throws: ``CacheError``, with the code `busy` if another collection takes longer than `patience`,
    ///   `badConfiguration` if the directory's limits can't be read.
    /// - Complexity: O(*n*) in keys and values.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func collect(
        _ options: CollectionOptions = CollectionOptions(),
        progress: @escaping @Sendable (CacheProgress) -> Void = { _ in }
    ) throws(CacheError) -> CollectionReport {
        // Whoever removes only what has expired need not be able to read the limits.
        let request = try options.request(options.expiredOnly ? CacheLimits() : limits())
        do throws(CacheError) {
            return try withStore { (store, now) throws(CacheError) in
                var request = request
                let rest = request.pace.pause
                // While it has the lock nobody else can make the room that writers wait for.
                request.pace.pause = { store.room.isPressed || rest($0) }
                request.progress = progress
                return try Sweep.run(request, on: store.parts, now: now)
            }
        } catch {
            guard error.code == .busy else { throw error }
            throw naming(error)
        }
    }

    /// The error with the process that is collecting, if that is known.
    private func naming(_ error: CacheError) -> CacheError {
        let record = SweepRecord.last(in: core.store.directory).flatMap { $0.ended == nil ? $0 : nil }
        let process = record.flatMap { core.store.visibleSweeper($0) }
        let holder =
            record.map { record in
                let name = process.map { "process \($0)" } ?? "another process"
                let seconds = max(0, (Timestamp.now - record.began) / .seconds(1))
                return "\(name) has been collecting for \(Int(seconds)) s"
            } ?? "another process is collecting"
        var advice = "wait for it, or try again later"
        if let process, ProcFiles.isStopped(process) ?? false {
            advice = "it is stopped: resume it (kill -CONT \(process)) or end it"
        }
        let message = "collect garbage in \(path): \(holder): \(advice)"
        return CacheError(.busy, message, cause: error.cause, path: error.path)
    }

    /// Removes every value that was stored before this call, or those of a selection.
    ///
    /// This is how to empty a directory that is in use. For all keys, a prefix or a tag it is one step, however many they
    /// are: before it everybody finds them, from it on no process does, whatever it has in memory. The next collection
    /// reclaims the space and counts what it deletes (``RemovalReason/requested``). What other processes store meanwhile
    /// may be removed or stay; what they have accepted and not yet written (``CacheConfiguration/Writing/behind``) stays.
    ///
    /// Keys that match a pattern (``KeySelection/glob(_:)``) are looked for and removed one by one, and so is everything
    /// if the directory has no control file, if it was made anew and no collection has looked at all keys since, or if
    /// the file of rules can't be written, as on a full disk.
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
    ///   - staleFor: how long they are available as stale values, in place of what they were stored with
    ///     (``PutOptions/staleFor``), rounded down to the millisecond; nil leaves that as it is.
    /// - Throws: ``CacheError``; some of the values may then have expired.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func expireAll(_ selection: KeySelection, staleFor: Duration? = nil) throws(CacheError) {
        if let staleFor { try Self.checkStalePeriod(staleFor) }
        try publishAll()
        try withStore { (store, now) throws(CacheError) in
            if store.enact(.expire(staleFor: staleFor), selection, now: now) { return }
            for shard in 0..<StoreLayout.shardCount {
                for key in try store.parts.digests(.entries, shard: shard).digests {
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
            // What was evicted from disk may still be in the memory of any process.
            try store.control.raiseAll()
        }
    }

    private func remove(_ selection: KeySelection, oneByOneFrom store: Store) throws(CacheError) {
        let log = store.parts.log
        for shard in 0..<StoreLayout.shardCount {
            var removed: [LoggedKey] = []
            defer { log?.append(removed, cause: .cleared) }
            for key in try store.parts.digests(.entries, shard: shard).digests {
                // What is no record goes with all others.
                guard let (stored, _) = try store.parts.entry(key),
                    stored.record.map({ selection.mayInclude($0) }) ?? (selection == .all),
                    try store.remove(key, ifStill: stored, isLogged: false)
                else { continue }
                if log != nil { removed.append(LoggedKey(digest: key, name: stored.record?.key)) }
            }
        }
        // What was evicted from disk may still be in the memory of any process.
        try store.control.raiseAll()
    }

    /// Reads and hashes all values, or a sample, and compares the metadata with them.
    ///
    /// Works on several threads. Needs about 27 bytes of memory per value, 270 MB for 10 million.
    ///
    /// - Parameters:
    ///   - options: what to check, and whether to repair it.
    ///   - found: called for each problem as it is found, on any thread.
    ///   - progress: called now and then, on the calling thread.
    /// - Complexity: O(*n*) in the bytes of the values that are read.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func verify(
        _ options: VerifyOptions = VerifyOptions(),
        found: @escaping @Sendable (VerifyReport.Finding) -> Void = { _ in },
        progress: @escaping @Sendable (CacheProgress) -> Void = { _ in }
    ) throws(CacheError) -> VerifyReport {
        switch options.sample {
        case .percent(let percent) where !(0...100).contains(percent):
            throw CacheError(.invalidArgument, "verify \(percent) per cent: use 0 to 100")
        case .count(let count) where count < 0:
            throw CacheError(.invalidArgument, "verify \(count) values: it can't be negative: use 0 or more")
        default: break
        }
        return try withStore { (store, _) throws(CacheError) in
            try Verification.run(options, on: store.parts, found: found, progress: progress)
        }
    }
}
