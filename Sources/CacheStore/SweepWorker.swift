// SPDX-License-Identifier: Apache-2.0

import Platform

/// What one thread of a sweep needs: it reads one shard after the other, and deletes.
///
/// Threads share nothing but the state, which is only ever held for what takes no system call. A thread holds one
/// stripe at a time, and waits for nothing else while it does.
struct SweepWorker: Sendable {
    /// How many entries are read before they are taken down: those that have expired go then.
    ///
    /// 64 share the cost of the state's lock and of one hold of a stripe (2 µs); the first 64 take 0.2 ms. A sweep
    /// that may have to end before it is done reads 8, so that the first are deleted at once and at most so
    /// many were read in vain.
    private var entriesAtATime: Int { pacer.isUnlimited ? 64 : 8 }

    let store: Store
    let request: SweepRequest
    /// The time when the sweep was asked for, by the caller's clock, and by one that runs steadily.
    let begin: (time: Timestamp, instant: ContinuousClock.Instant)
    /// Made before the stamp was taken.
    let clock: ClockWitness
    let scan: StoreScan
    let state: Locked<SweepState>.Box
    var pacer: SweepPacer
    /// How often it was asked whether to go on.
    private var steps = 0
    /// So few that those who wait see it get on within ``RoomWait/longestStandstill`` also where each file takes the
    /// medium 20 ms, and so many that to say so costs nothing.
    private static let stepsPerNote = 16
    /// The present as the file system dates changes, taken before any entry was read; nil before that, and where change
    /// times do not tell of all changes of an entry.
    var stamp: Timestamp?
    /// The same for objects, whose changes each file system dates.
    var objectStamp = Timestamp.distantPast

    /// By which it measures how long it holds a stripe.
    var instant: @Sendable () -> ContinuousClock.Instant = { .now }

    init(
        _ request: SweepRequest,
        on store: Store,
        now: Timestamp,
        clock: ClockWitness = ClockWitness()
    ) {
        self.store = store
        self.request = request
        begin = (now, ContinuousClock.now)
        self.clock = clock
        scan = StoreScan(of: store)
        let directory = store.directory
        let isLengthTelling = directory.fileSystem.givesSmallFilesTheirBlocks
        state = Locked.Box(
            SweepState(
                blockSize: isLengthTelling ? directory.blockSize : nil,
                expiredOnly: request.expiredOnly
            )
        )
        pacer = SweepPacer(request.pace)
    }

    /// The present by the caller's clock: a sweep may wait and scan for minutes, and what is used meanwhile
    /// must not look as if it were used in the future.
    var now: Timestamp { begin.time + (ContinuousClock.now - begin.instant) }

    /// Whether to go on: takes a rest where one is due, and ends the sweep where its time is over.
    ///
    /// Called between single things, while no stripe is held.
    mutating func mayGoOn() -> Bool {
        steps &+= 1
        if steps.isMultiple(of: Self.stepsPerNote) { store.control.noteSweepStep() }
        if pacer.mayGoOn() { return true }
        state.value.withLock { $0.report.isComplete = false }
        return false
    }

    /// Reads the entries of one shard, and deletes those that are of no use as it finds them: of a sweep whose time
    /// runs out, that much is done.
    ///
    /// All that are listed are noted in `filter`. False: time ran out.
    mutating func scanEntries(inShard shard: Int, noting filter: FilterCompletion?) throws(StoreError) -> Bool
    {
        var files: [StoreScan.File] = []
        guard let directory = try open(.entries, shard: shard, &files) else { return true }
        if let filter { for file in files { filter.insert(file.digest) } }
        return try forEachPiece(of: files, in: directory) { $0.note($1) }
    }

    /// Looks through the entries of one shard for those whose objects are gone, and deletes them; all objects have been
    /// listed.
    ///
    /// False: time ran out.
    mutating func deleteDangling(inShard shard: Int) throws(StoreError) -> Bool {
        var files: [StoreScan.File] = []
        guard let directory = try list(.entries, shard: shard, &files) else { return true }
        return try forEachPiece(of: files, in: directory) { (state, sightings) in
            state.dangling(sightings)
        }
    }

    /// Reads entries, and deletes those that `note` says.
    private mutating func forEachPiece(
        of files: [StoreScan.File],
        in directory: borrowing Directory,
        _ note: (inout SweepState, [SweepState.Sighting]) -> [SweepState.Removal]
    ) throws(StoreError) -> Bool {
        var position = 0
        while position < files.count {
            let piece = files[position..<min(position + entriesAtATime, files.count)]
            var sightings: [SweepState.Sighting] = []
            sightings.reserveCapacity(piece.count)
            let isOver = try !read(piece, in: directory, into: &sightings)
            let seen = sightings
            let removals = state.value.withLock { note(&$0, seen) }
            if try !deleteEntries(removals[...], in: directory) || isOver { return false }
            position += piece.count
        }
        return true
    }

    /// False: time ran out.
    private mutating func read(
        _ files: ArraySlice<StoreScan.File>,
        in directory: borrowing Directory,
        into sightings: inout [SweepState.Sighting]
    ) throws(StoreError) -> Bool {
        // Once for all of them, as it is not for free.
        let now = now
        for file in files {
            guard mayGoOn() else { return false }
            let key = file.digest
            do throws(StoreError) {
                guard let (bytes, status) = try scan.entry(key, in: directory) else { continue }
                if let record = RecordCodec.decode(bytes, for: key) {
                    let entry = SeenEntry(key, record, bytes, status, limits: request.limits, now: now)
                    sightings.append(SweepState.Sighting(entry: entry, length: record.content.length))
                } else {
                    let entry = SeenEntry(corrupt: key, bytes, status, now: now)
                    sightings.append(SweepState.Sighting(entry: entry))
                }
            } catch {
                try noteUnreadable(.entries, error)
            }
        }
        return true
    }

    /// Looks at the objects of one shard, and deletes those that no entry names; all entries have been read.
    ///
    /// False: time ran out.
    mutating func scanObjects(inShard shard: Int) throws(StoreError) -> Bool {
        var files: [StoreScan.File] = []
        guard let directory = try open(.objects, shard: shard, &files) else { return true }
        let listed = files
        var (asked, unreferenced) = state.value.withLock { state in
            var asked: [StoreScan.File] = []
            var unreferenced: [SweepState.Unreferenced] = []
            for file in listed {
                switch state.noteListedObject(file) {
                case .unknown: asked.append(file)
                case .noted(let object): if let object { unreferenced.append(object) }
                }
            }
            return (asked, unreferenced)
        }
        guard let found = try statuses(of: asked, in: directory) else { return false }
        asked = []
        unreferenced += state.value.withLock { state in
            found.compactMap { state.noteObject($0.digest, $0.status) }
        }
        // In this order a block of inodes is changed within one transaction of the journal.
        unreferenced.sort { $0.inode < $1.inode }
        return try deleteObjects(unreferenced[...], in: directory, changedBefore: objectStamp)
    }

    /// nil: time ran out.
    private mutating func statuses(
        of files: [StoreScan.File],
        in directory: borrowing Directory
    ) throws(StoreError) -> [(digest: Digest, status: FileStatus)]? {
        var found: [(digest: Digest, status: FileStatus)] = []
        found.reserveCapacity(files.count)
        for file in files {
            guard mayGoOn() else { return nil }
            let digest = file.digest
            do throws(StoreError) {
                let status = try scan.status(of: digest, .objects, in: directory)
                guard let status, status.kind == .regular else { continue }
                found.append((digest, status))
            } catch {
                try noteUnreadable(.objects, error)
                state.value.withLock { $0.noteUnreadableObject(digest) }
            }
        }
        return found
    }

    /// Opens a shard and tells what is in it; nil where there is none, or none that can be read.
    private func open(
        _ tree: StoreScan.Tree,
        shard: Int,
        _ files: inout [StoreScan.File]
    ) throws(StoreError) -> Directory? {
        guard let directory = try list(tree, shard: shard, &files, isFirst: true) else { return nil }
        noteOverhead(of: directory)
        return directory
    }

    /// `isFirst`: what is found beside our files is taken down.
    private func list(
        _ tree: StoreScan.Tree,
        shard: Int,
        _ files: inout [StoreScan.File],
        isFirst: Bool = false
    ) throws(StoreError) -> Directory? {
        do throws(StoreError) {
            var listing = StoreScan.Listing()
            let directory = try scan.open(tree, shard: shard, listing: &listing)
            files = listing.files
            let unrecognised = listing.unrecognised
            if isFirst, !unrecognised.isEmpty {
                state.value.withLock { $0.report.unrecognised += unrecognised }
            }
            return directory
        } catch {
            try noteUnreadable(tree, error)
            if tree == .objects {
                state.value.withLock { _ = $0.unreadableShards.insert(UInt8(truncatingIfNeeded: shard)) }
            }
            return nil
        }
    }

    /// Adds what a directory takes by itself.
    private func noteOverhead(of directory: borrowing Directory) {
        // One that can be listed can be looked at; else the overhead is counted too low by it.
        var size: Int64 = 0
        do throws(Errno) { size = try directory.descriptor.status().allocatedSize } catch { return }
        state.value.withLock { [size] in $0.overhead += size }
    }

    /// Opens a shard to delete something in it; nil where it is gone, or can't be opened.
    func open(_ tree: StoreScan.Tree, shard: Int) throws(StoreError) -> Directory? {
        do throws(StoreError) {
            return try scan.open(tree, shard: shard)
        } catch {
            try noteUnreadable(tree, error)
            return nil
        }
    }

    /// Passes over what concerns a single file or shard; what concerns all ends the sweep.
    private func noteUnreadable(_ tree: StoreScan.Tree, _ error: StoreError) throws(StoreError) {
        guard error.concernsOneFile else { throw error }
        let path = relativePath(error)
        state.value.withLock { state in
            state.noteUnreadable(path)
            if tree == .entries { state.hasUnreadableEntries = true }
        }
    }

    /// Where it happened, below the cache directory.
    func relativePath(_ error: StoreError) -> String {
        String(error.path.dropFirst(store.directory.path.count + 1))
    }
}

extension StoreError {
    /// Whether others may well be as they should: a damaged sector or inode, or permissions that somebody has
    /// changed.
    var concernsOneFile: Bool {
        switch errno {
        case .inputOutput, .accessDenied, .notPermitted, .structureNeedsCleaning, .badMessage: true
        default: false
        }
    }
}
