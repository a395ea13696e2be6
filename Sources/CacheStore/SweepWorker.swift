// SPDX-License-Identifier: Apache-2.0

import Platform

/// What one thread of a sweep needs: it reads one shard after the other, and deletes.
///
/// Threads share nothing but the state, which is only ever held for what takes no system call. A thread holds one
/// stripe at a time, and waits for nothing else while it does.
struct SweepWorker: Sendable {
    /// How many entries are read before they are taken down: those that have expired go then.
    ///
    /// Of a sweep whose time runs out at most this many are read in vain: 0.2 ms of work.
    private static let entriesAtATime = 64

    let store: Store
    let request: SweepRequest
    /// The time when the sweep was asked for, by the caller's clock, and by one that runs steadily.
    let begin: (time: Timestamp, instant: ContinuousClock.Instant)
    /// Made before the stamp was taken.
    let clock: ClockWitness
    let scan: StoreScan
    let state: Locked<SweepState>.Box
    var pacer: SweepPacer

    init(_ request: SweepRequest, on store: Store, now: Timestamp) {
        self.store = store
        self.request = request
        begin = (now, ContinuousClock.now)
        clock = ClockWitness()
        scan = StoreScan(of: store)
        state = Locked.Box(SweepState())
        pacer = SweepPacer(request.pace)
    }

    /// The present by the caller's clock: a sweep may wait and scan for minutes, and what is used meanwhile
    /// must not look as if it were used in the future.
    var now: Timestamp { begin.time + (ContinuousClock.now - begin.instant) }

    /// Whether to go on: takes a rest where one is due, and ends the sweep where its time is over.
    ///
    /// Called between single things, while no stripe is held.
    mutating func mayGoOn() -> Bool {
        if pacer.mayGoOn() { return true }
        state.value.withLock { $0.report.isComplete = false }
        return false
    }

    /// Reads the entries of one shard, and deletes those that have expired as it finds them: of a sweep whose time
    /// runs out, that much is done.
    ///
    /// All that are listed are noted in `filter`. False: time ran out.
    mutating func scanEntries(inShard shard: Int, noting filter: FilterCompletion?) throws(StoreError) -> Bool {
        var keys: [Digest] = []
        guard let directory = try open(.entries, shard: shard, &keys) else { return true }
        if let filter { for key in keys { filter.insert(key) } }
        var position = 0
        while position < keys.count {
            let piece = keys[position..<min(position + Self.entriesAtATime, keys.count)]
            var sightings: [SweepState.Sighting] = []
            sightings.reserveCapacity(piece.count)
            let isOver = try !read(piece, in: directory, into: &sightings)
            let seen = sightings
            let expired = state.value.withLock { $0.note(seen) }
            if try !deleteEntries(expired[...], in: directory) || isOver { return false }
            position += piece.count
        }
        return true
    }

    /// False: time ran out.
    private mutating func read(
        _ keys: ArraySlice<Digest>,
        in directory: borrowing Directory,
        into sightings: inout [SweepState.Sighting]
    ) throws(StoreError) -> Bool {
        // Once for all of them, as it is not for free.
        let now = now
        for key in keys {
            guard mayGoOn() else { return false }
            do throws(StoreError) {
                guard let (bytes, status) = try scan.entry(key, in: directory) else { continue }
                let record = RecordCodec.decode(bytes, for: key)
                let entry = SeenEntry(key, record, bytes, status, limits: request.limits, now: now)
                sightings.append(SweepState.Sighting(entry: entry, content: record?.content.digest))
            } catch {
                try noteUnreadable(.entries, error)
            }
        }
        return true
    }

    /// Looks at the objects of one shard; all entries have been read.
    ///
    /// False: time ran out.
    mutating func scanObjects(inShard shard: Int) throws(StoreError) -> Bool {
        var digests: [Digest] = []
        guard let directory = try open(.objects, shard: shard, &digests) else { return true }
        var found: [(digest: Digest, status: FileStatus)] = []
        found.reserveCapacity(digests.count)
        for digest in digests {
            guard mayGoOn() else { return false }
            do throws(StoreError) {
                let status = try scan.status(of: digest, .objects, in: directory)
                guard let status, status.kind == .regular else { continue }
                found.append((digest, status))
            } catch {
                try noteUnreadable(.objects, error)
                state.value.withLock { state in
                    let place = state.contents.place(of: digest)
                    state.contents[place].presence = .unreadable
                }
            }
        }
        let objects = found
        state.value.withLock { state in
            for object in objects { state.noteObject(object.digest, object.status) }
        }
        return true
    }

    /// Opens a shard and adds the digests in it; nil where there is none, or none that can be read.
    private func open(
        _ tree: StoreScan.Tree,
        shard: Int,
        _ digests: inout [Digest]
    ) throws(StoreError) -> Directory? {
        do throws(StoreError) {
            var listing = StoreScan.Listing()
            let directory = try scan.open(tree, shard: shard, listing: &listing)
            digests = listing.digests
            let unrecognised = listing.unrecognised
            if !unrecognised.isEmpty { state.value.withLock { $0.report.unrecognised += unrecognised } }
            return directory
        } catch {
            try noteUnreadable(tree, error)
            if tree == .objects { state.value.withLock { $0.contents.noteUnreadable(shard: shard) } }
            return nil
        }
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
