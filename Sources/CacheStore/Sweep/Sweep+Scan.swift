// SPDX-License-Identifier: Apache-2.0

import Platform

/// The work of one thread of a sweep on one shard: it reads the shard, and deletes useless files as it finds them. So a sweep
/// whose time runs out has done a part of its work. The functions return false if the time ran out.
extension Sweep {
    /// How many entries are read before they are taken down: those that have expired go then.
    ///
    /// 64 share the cost of the state's lock and of one hold of a stripe (2 µs); the first 64 take 0.2 ms. A sweep
    /// that may have to end before it is done reads 8, so that the first are deleted at once, and at most
    /// so many were read for nothing.
    private var entriesAtATime: Int { pacer.isUnlimited ? 64 : 8 }

    /// The present by the caller's clock: a sweep may wait and scan for minutes, and an entry that is used
    /// meanwhile must not look as if it were used in the future.
    private var now: Timestamp { begin.time + (ContinuousClock.now - begin.instant) }

    // MARK: Entries

    /// Reads the entries of one shard; all that are listed are noted in `filter`.
    mutating func readEntries(inShard shard: Int, noting filter: KeyFilter?) throws(CacheError) -> Bool {
        var files: [StoreParts.File] = []
        guard let directory = try list(.entries, shard: shard, &files) else { return true }
        if let filter { for file in files { filter.insert(file.digest) } }
        return try forEachPiece(of: files, in: directory) { $0.note($1) }
    }

    /// Looks through the entries of one shard for those whose objects are gone; all objects have been listed.
    mutating func deleteDangling(inShard shard: Int) throws(CacheError) -> Bool {
        var files: [StoreParts.File] = []
        guard let directory = try list(.entries, shard: shard, &files, isFirst: false) else { return true }
        return try forEachPiece(of: files, in: directory) { $0.dangling($1) }
    }

    /// Reads entries, and deletes those that `note` says.
    private mutating func forEachPiece(
        of files: [StoreParts.File],
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

    /// The entries that were read of `files`, and whether the time ran out before the last of them.
    private mutating func read(
        _ files: ArraySlice<StoreParts.File>,
        in directory: borrowing Directory
    ) throws(CacheError) -> (sightings: [SweepState.Sighting], isOver: Bool) {
        // Once for all of them, as it is not for free.
        let (now, parts) = (now, parts)
        var sightings: [SweepState.Sighting] = []
        sightings.reserveCapacity(files.count)
        var watch = RuleWatch()
        defer { state.value.withLock { [watch] in $0.ruleWatch.add(watch) } }
        for file in files {
            guard pacer.mayGoOn() else { return (sightings, true) }
            let key = file.digest
            do throws(CacheError) {
                guard let (bytes, status) = try parts.entry(key, in: directory) else { continue }
                let record = RecordCodec.decode(bytes, for: key)
                var entry = SeenEntry(key, record, bytes, status, limits: request.limits, now: now)
                if let record { try judge(&entry, record, bytes, status, now, &watch) }
                sightings.append((entry, record?.content.length ?? 0))
            } catch {
                try noteUnreadable(.entries, error)
            }
        }
        return (sightings, false)
    }

    /// Decides what the rules, and the request's selection, make of an entry with a record.
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
        // It stays, or is stale for a while yet.
        let isOver = entry.verdict == .cleared || entry.verdict == .expired
        if !isOver { watch.kept.formUnion(meant.map(\.number)) }
    }

    // MARK: Objects

    /// Looks at the objects of one shard, and deletes those that no entry names; all entries have been read.
    mutating func lookAtObjects(inShard shard: Int) throws(CacheError) -> Bool {
        var files: [StoreParts.File] = []
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
        // In this order a block of inodes is changed within one transaction of the journal.
        unreferenced.sort { $0.inode < $1.inode }
        return try delete(unreferenced, in: directory)
    }

    /// nil: time ran out.
    private mutating func statuses(
        of files: [StoreParts.File],
        in directory: borrowing Directory
    ) throws(CacheError) -> [(digest: Digest, status: FileStatus)]? {
        var found: [(digest: Digest, status: FileStatus)] = []
        found.reserveCapacity(files.count)
        var hasIndexBlocks = false
        for file in files {
            guard pacer.mayGoOn() else { return nil }
            let digest = file.digest
            do throws(CacheError) {
                let status = try parts.status(of: digest, .objects, in: directory)
                guard let status, status.kind == .regular else { continue }
                hasIndexBlocks = hasIndexBlocks || parts.control.hasIndexBlocks(status)
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

    /// Deletes entries, or objects, of one shard that nobody has used or changed since they were seen.
    ///
    /// Two system calls each, and a third for an entry where somebody has been at it, beside those for the lock.
    mutating func delete(_ removals: [Removal], in shard: borrowing Directory) throws(CacheError) -> Bool {
        guard let first = removals.first else { return true }
        let sweep = self
        var names: [Digest: String] = [:]
        let (outcomes, failure) = deletions.run(removals, stripe: first.digest.stripe, &pacer) {
            (removal) throws(CacheError) in
            // Read while it is there.
            let name = try sweep.name(of: removal, in: shard)
            guard try sweep.delete(removal, in: shard) else { return false }
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

    /// The key of an entry that is to be deleted, if that is to be told; nil also where its record does not have it.
    private func name(of removal: Removal, in shard: borrowing Directory) throws(CacheError) -> String? {
        guard request.onRemoval != nil, let entry = removal.entry,
            let bytes = try parts.recordBytes(of: entry.key, in: shard)
        else { return nil }
        return RecordCodec.decode(bytes, for: entry.key)?.key
    }

    /// Tells of the entries that were deleted, with no lock held.
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

    /// Decides again under the lock that keeps writers away; false: it stays as it is.
    private func delete(_ removal: Removal, in shard: borrowing Directory) throws(CacheError) -> Bool {
        guard try isAsSeen(removal, in: shard) else { return false }
        return request.isDryRun ? true : try parts.delete(removal.digest, removal.tree, in: shard)
    }

    /// One system call for an object, and for an entry where its change time tells that nobody has been at it since the
    /// sweep began; two where the record must be read again.
    private func isAsSeen(_ removal: Removal, in shard: borrowing Directory) throws(CacheError) -> Bool {
        guard let status = try parts.status(of: removal.digest, removal.tree, in: shard),
            status.kind == .regular
        else { return false }
        guard let entry = removal.entry else {
            if parts.control.hasIndexBlocks(status) { parts.control.noteIndexBlocks(true) }
            return try parts.isUntouched(removal.digest, status, stamp, isDryRun: request.isDryRun)
        }
        if removal.reason != .dangling, stamp.isUntouched(entry, status) { return true }
        guard let bytes = try parts.recordBytes(of: entry.key, in: shard), entry.isStill(bytes, status)
        else { return false }
        guard removal.reason == .dangling, let record = RecordCodec.decode(bytes, for: entry.key)
        else { return true }
        return try parts.object(record.content.digest) == nil
    }

    // MARK: Shards

    /// Opens a shard and tells what is in it; nil where there is none, or none that can be read.
    ///
    /// `isFirst`: what it takes by itself, and what is found beside our files, is taken down.
    private func list(
        _ tree: Tree,
        shard: Int,
        _ files: inout [StoreParts.File],
        isFirst: Bool = true
    ) throws(CacheError) -> Directory? {
        do throws(CacheError) {
            var listing = StoreParts.Listing()
            let found = try parts.list(tree, shard: shard, into: &listing)
            files = listing.files
            guard isFirst else { return found }
            state.value.withLock { [unrecognised = listing.unrecognised] state in
                state.report.unrecognised += unrecognised
            }
            guard let directory = found else { return nil }
            if !listing.temporaries.isEmpty {
                _ = try deleteUnlocked(listing.temporaries, in: directory, StoreLayout.shards[shard])
            }
            // One that can be listed can be looked at; else the overhead is counted too low by it.
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

    /// Opens a shard to delete something in it; nil where it is gone, or can't be opened.
    func open(_ tree: Tree, shard: Int) throws(CacheError) -> Directory? {
        do throws(CacheError) {
            return try parts.open(tree, shard: shard)
        } catch {
            try noteUnreadable(tree, error)
            return nil
        }
    }

    /// Passes over what concerns a single file or shard; what concerns all ends the sweep.
    private func noteUnreadable(_ tree: Tree, _ error: CacheError) throws(CacheError) {
        guard error.concernsOneFile else { throw error }
        let path = parts.directory.relativePath(error)
        state.value.withLock { state in
            state.report.unreadable.append(path)
            if tree == .entries { state.pass.hasUnreadableEntries = true }
        }
    }
}
