// SPDX-License-Identifier: Apache-2.0

import Platform

/// The work of one thread of a sweep on one shard.
///
/// A thread reads the shard and deletes useless files as it finds them, so a sweep whose time runs out has done part of
/// its work. The functions return false if the time ran out.
extension Sweep {
    /// The number of entries to read before they are recorded and the expired ones are deleted.
    ///
    /// A batch of 64 entries shares the cost of locking the state and of holding a stripe once (2 µs); reading it takes
    /// 0.2 ms. A sweep that may have to end early reads batches of 8, so that it soon deletes the first files and reads
    /// at most 8 entries in vain.
    private var entriesAtATime: Int { pacer.isUnlimited ? 64 : 8 }

    /// The current time by the caller's clock.
    ///
    /// A sweep may wait and scan for minutes. With the time of its beginning, an entry that is used meanwhile would look
    /// as if it were used in the future.
    private var now: Timestamp { begin.time + (ContinuousClock.now - begin.instant) }

    // MARK: Entries

    /// Reads the entries of one shard, deletes the expired ones, and adds all listed keys to `filter`.
    mutating func readEntries(inShard shard: Int, noting filter: BloomFilter?) throws(CacheError) -> Bool {
        var files: [Store.File] = []
        guard let directory = try list(.entries, shard: shard, &files) else { return true }
        if let filter { for file in files { filter.insert(file.digest) } }
        return try forEachPiece(of: files, in: directory) { $0.note($1) }
    }

    /// Deletes the entries of one shard whose objects are missing; called after all objects were listed.
    mutating func deleteDangling(inShard shard: Int) throws(CacheError) -> Bool {
        var files: [Store.File] = []
        guard let directory = try list(.entries, shard: shard, &files, isFirst: false) else { return true }
        return try forEachPiece(of: files, in: directory) { $0.dangling($1) }
    }

    /// Reads `files` in batches, and deletes the entries that `note` returns for each batch.
    private mutating func forEachPiece(
        of files: [Store.File],
        in directory: borrowing Directory,
        _ note: (inout SweepState, [SweepState.Sighting]) -> [Removal]
    ) throws(CacheError) -> Bool {
        var position = 0
        while position < files.count {
            let piece = files[position..<min(position + entriesAtATime, files.count)]
            let (sightings, isOver) = try read(piece, in: directory)
            let removals = state.value.withLock { note(&$0, sightings) }
            if try !delete(removals, in: directory) || isOver { return false }
            position += piece.count
        }
        return true
    }

    /// Reads entries, and returns those that it read and whether the time ran out before the last one.
    private mutating func read(
        _ files: ArraySlice<Store.File>,
        in directory: borrowing Directory
    ) throws(CacheError) -> (sightings: [SweepState.Sighting], isOver: Bool) {
        // Computed once for all files, because it is not free.
        let (now, store) = (now, store)
        var sightings: [SweepState.Sighting] = []
        sightings.reserveCapacity(files.count)
        var watch = RuleWatch()
        defer { state.value.withLock { [watch] in $0.ruleWatch.add(watch) } }
        for file in files {
            guard pacer.mayGoOn() else { return (sightings, true) }
            let key = file.digest
            do throws(CacheError) {
                guard let (bytes, status) = try store.entry(key, in: directory) else { continue }
                let record = Record(decoding: bytes, for: key)
                var entry = SeenEntry(key, record, bytes, status, limits: request.limits, now: now)
                if let record { try judge(&entry, record, bytes, status, now, &watch) }
                sightings.append((entry, record?.content.length ?? 0))
            } catch {
                try noteUnreadable(.entries, error)
            }
        }
        return (sightings, false)
    }

    /// Applies the rules and the request's selection to an entry whose record is valid.
    private func judge(
        _ entry: inout SeenEntry,
        _ record: Record,
        _ bytes: [UInt8],
        _ status: FileStatus,
        _ now: Timestamp,
        _ watch: inout RuleWatch
    ) throws(CacheError) {
        watch.latestCreated = max(watch.latestCreated, record.created)
        var meant: [RemovalRule] = []
        if case .these(let rules, let number) = rules { meant = rules.meant(for: record, upTo: number) }
        if !meant.isEmpty {
            let left = try record.applying(meant) { () throws(CacheError) in status.accessed }
            if let left {
                entry = SeenEntry(entry.key, left, bytes, status, limits: request.limits, now: now)
            } else {
                entry.verdict = .cleared
            }
        }
        if !request.selection.includes(record) {
            entry.verdict = nil
            entry.isSelected = false
        }
        // The entry remains, perhaps as a stale one, so the rules that apply to it must be kept.
        let isOver = entry.verdict == .cleared || entry.verdict == .expired
        if !isOver { watch.kept.formUnion(meant.map(\.number)) }
    }

    // MARK: Objects

    /// Checks the objects of one shard, and deletes those that no entry names; called after all entries were read.
    mutating func lookAtObjects(inShard shard: Int) throws(CacheError) -> Bool {
        var files: [Store.File] = []
        guard let directory = try list(.objects, shard: shard, &files) else { return true }
        let listed = files
        var (asked, unreferenced) = state.value.withLock { state in
            var unreferenced: [Removal] = []
            let asked = listed.filter { !state.noteListedObject($0, &unreferenced) }
            return (asked, unreferenced)
        }
        guard let found = try statuses(of: asked, in: directory) else { return false }
        asked = []
        unreferenced += state.value.withLock { state in
            found.compactMap { state.noteObject($0.digest, $0.status) }
        }
        // In the order of the inodes, each block of inodes is changed within one transaction of the journal.
        unreferenced.sort { $0.inode < $1.inode }
        return try delete(unreferenced, in: directory)
    }

    /// Returns the status of each object that exists, or nil if the time ran out.
    private mutating func statuses(
        of files: [Store.File],
        in directory: borrowing Directory
    ) throws(CacheError) -> [(digest: Digest, status: FileStatus)]? {
        var found: [(digest: Digest, status: FileStatus)] = []
        found.reserveCapacity(files.count)
        var hasIndexBlocks = false
        for file in files {
            guard pacer.mayGoOn() else { return nil }
            let digest = file.digest
            do throws(CacheError) {
                let status = try store.status(of: digest, .objects, in: directory)
                guard let status, status.kind == .regular else { continue }
                hasIndexBlocks = hasIndexBlocks || store.control.hasIndexBlocks(status)
                found.append((digest, status))
            } catch {
                try noteUnreadable(.objects, error)
                state.value.withLock { $0.noteUnreadableObject(digest) }
            }
        }
        if hasIndexBlocks { state.value.withLock { $0.pass.hasIndexBlocks = true } }
        return found
    }

    // MARK: Deleting

    /// Deletes the given files of one shard, except those that were used or changed since the sweep saw them.
    ///
    /// Two system calls for each file, three for an entry that another process has accessed; and those for the lock.
    ///
    /// - Returns: false if the time ran out.
    mutating func delete(_ removals: [Removal], in shard: borrowing Directory) throws(CacheError) -> Bool {
        guard let first = removals.first else { return true }
        let sweep = self
        var names: [Digest: String] = [:]
        let (outcomes, failure) = deletions.run(removals, stripe: first.digest.stripe, &pacer) {
            (removal, lock: borrowing StripeLock) throws(CacheError) in
            // The name is in the record, so it must be read before the entry is deleted.
            let name = try sweep.name(of: removal, in: shard)
            guard try sweep.delete(removal, in: shard, under: lock) else { return false }
            if let name { names[removal.digest] = name }
            return true
        }
        state.value.withLock { $0.note(removals, outcomes) }
        if let onRemoval = request.onRemoval {
            tell(onRemoval, of: zip(removals, outcomes).filter { $0.1.isDeletion }.map(\.0), names)
        }
        if let failure { throw failure }
        return outcomes.count == removals.count
    }

    /// Returns the key of an entry that is about to be deleted; nil if no handler is set or if the record lacks the key.
    private func name(of removal: Removal, in shard: borrowing Directory) throws(CacheError) -> String? {
        guard request.onRemoval != nil, let entry = removal.entry,
            let bytes = try store.recordBytes(of: entry.key, in: shard)
        else { return nil }
        return Record(decoding: bytes, for: entry.key)?.key
    }

    /// Reports the deleted entries to the handler; holds no lock.
    private func tell(
        _ onRemoval: @Sendable (LoggedRemoval) -> Void,
        of removals: [Removal],
        _ names: [Digest: String]
    ) {
        let news = state.value.withLock { state in removals.filter { $0.entry != nil && state.isNews($0) } }
        for removal in news {
            let key = LoggedKey(digest: removal.digest, name: names[removal.digest])
            onRemoval(
                LoggedRemoval(
                    time: .now,
                    process: CurrentProcess.identifier,
                    cause: .collected(removal.reason),
                    key: key
                )
            )
        }
    }

    /// Checks a file again, now that the stripe excludes all writers, and deletes it; returns false if the file stays.
    private func delete(
        _ removal: Removal,
        in shard: borrowing Directory,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> Bool {
        guard try isAsSeen(removal, in: shard, under: lock) else { return false }
        if request.isDryRun { return true }
        if let entry = removal.entry { try store.rememberVersion(of: entry.key, under: lock) }
        return try store.delete(removal.digest, removal.tree, in: shard)
    }

    /// Returns whether the file is unchanged since the sweep saw it.
    ///
    /// One system call for an object, and for an entry whose change time shows that it was not accessed since the sweep
    /// began; two if the record must be read again.
    private func isAsSeen(
        _ removal: Removal,
        in shard: borrowing Directory,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> Bool {
        guard let status = try store.status(of: removal.digest, removal.tree, in: shard),
            status.kind == .regular
        else { return false }
        guard let entry = removal.entry else {
            if store.control.hasIndexBlocks(status) { store.control.noteIndexBlocks(true) }
            return try store.isUntouched(
                removal.digest,
                status,
                stamp,
                isDryRun: request.isDryRun,
                under: lock
            )
        }
        if removal.reason != .dangling, stamp.isUntouched(entry, status) { return true }
        guard let bytes = try store.recordBytes(of: entry.key, in: shard), entry.isStill(bytes, status)
        else { return false }
        guard removal.reason == .dangling, let record = Record(decoding: bytes, for: entry.key)
        else { return true }
        return try store.object(record.content.digest) == nil
    }

    // MARK: Shards

    /// Opens a shard and lists its files; returns nil if the shard is missing or unreadable.
    ///
    /// - Parameter isFirst: whether to record the shard's own size and its unrecognized files, and to delete stale
    ///   temporary files.
    private func list(
        _ tree: Tree,
        shard: Int,
        _ files: inout [Store.File],
        isFirst: Bool = true
    ) throws(CacheError) -> Directory? {
        do throws(CacheError) {
            var listing = Store.Listing()
            let found = try store.list(tree, shard: shard, into: &listing)
            files = listing.files
            guard isFirst else { return found }
            state.value.withLock { [unrecognised = listing.unrecognised] state in
                state.report.unrecognised += unrecognised
            }
            guard let directory = found else { return nil }
            if !listing.temporaries.isEmpty {
                _ = try deleteUnlocked(listing.temporaries, in: directory, StoreLayout.shards[shard])
            }
            // The status of a directory that can be listed is readable. If it is not, the overhead is too low by the size
            // of the shard.
            let status = bestEffort { () throws(Errno) in try directory.descriptor.status() }
            if let status { state.value.withLock { $0.pass.overhead += status.allocatedSize } }
            return directory
        } catch {
            try noteUnreadable(tree, error)
            if tree == .objects {
                state.value.withLock { _ = $0.pass.unreadableShards.insert(shard) }
            }
            return nil
        }
    }

    /// Opens a shard to delete files in it; returns nil if it is missing or can't be opened.
    func open(_ tree: Tree, shard: Int) throws(CacheError) -> Directory? {
        do throws(CacheError) {
            return try store.open(tree, shard: shard)
        } catch {
            try noteUnreadable(tree, error)
            return nil
        }
    }

    /// Records an error that concerns one file or shard; rethrows any other error, which ends the sweep.
    private func noteUnreadable(_ tree: Tree, _ error: CacheError) throws(CacheError) {
        guard error.concernsOneFile else { throw error }
        let path = store.directory.relativePath(error)
        state.value.withLock { state in
            state.report.unreadable.append(path)
            if tree == .entries { state.pass.hasUnreadableEntries = true }
        }
    }
}
