// SPDX-License-Identifier: Apache-2.0

import Platform

extension Sweep {
    /// Deletes the files that killed processes have left, and keeps other programs from deleting permanent files; returns
    /// false if the time ran out.
    mutating func deleteLeftovers() throws(CacheError) -> Bool {
        let others = try deleteStaleTemporaries()
        state.value.withLock { $0.report.unrecognised += others }
        guard pacer.mayGoOn() else { return false }
        // Copies that were being written in the root, because a file can't be moved there.
        _ = try deleteUnlocked(in: store.directory.root, ".", path: StoreLayout.path(ofTemporary:))
        // A process holds the lock of a computation while it computes, and a permit while it has it. A process that acquires
        // one while it is deleted here finds its name missing and creates a new one. The lock is shared, so that such a process
        // does not mistake this one for its holder; there is one collection at a time.
        _ = try deleteUnlocked(in: store.directory.locks, StoreLayout.locks, .shared) { name in
            StoreLayout.isPassingLock(name) ? RelativePath(name) : nil
        }
        if !request.isDryRun { freshenPermanentFiles() }
        return pacer.mayGoOn()
    }

    /// Deletes the temporary files of dead processes; returns the names of files that are not the cache's.
    ///
    /// A temporary file is locked as long as its process lives.
    private func deleteStaleTemporaries() throws(CacheError) -> [String] {
        let temporaries: TemporaryArea
        do throws(Errno) {
            temporaries = try TemporaryArea(of: store.directory)
        } catch {
            // Without the directory there are no temporary files, and puts work without it if they need no names.
            if error == .notDirectory || error == .tooManyLinks { return ["\(StoreLayout.temporaries)"] }
            throw CacheError(errno: error, "clean", path: path(of: StoreLayout.temporaries))
        }
        return try deleteUnlocked(in: temporaries.directory, StoreLayout.temporaries) {
            StoreLayout.path(ofTemporary: $0)
        }
    }

    private func path(of place: RelativePath) -> String { "\(store.directory.path)/\(place)" }

    /// Deletes the files in `directory` that no process holds locked, if `path` returns a path for their names; returns the
    /// names of the others.
    private func deleteUnlocked(
        in directory: borrowing Directory,
        _ place: RelativePath,
        _ mode: LockMode = .exclusive,
        path: (String) -> RelativePath?
    ) throws(CacheError) -> [String] {
        let names = try describing("clean", self.path(of: place)) { () throws(Errno) in try directory.names()
        }
        return try deleteUnlocked(names, in: directory, place, mode, path: path)
    }

    /// Deletes the named files that no process holds locked, as above.
    func deleteUnlocked(
        _ names: [String],
        in directory: borrowing Directory,
        _ place: RelativePath,
        _ mode: LockMode = .exclusive,
        path: (String) -> RelativePath? = StoreLayout.path(ofTemporary:)
    ) throws(CacheError) -> [String] {
        var tally = CollectionReport.Tally()
        var (others, stuck): ([String], [String]) = ([], [])
        try describing("clean", self.path(of: place)) { () throws(Errno) in
            for name in names {
                do throws(Errno) {
                    guard let path = path(name) else {
                        others.append("\(place)/\(name)")
                        continue
                    }
                    let outcome = try ifExists { () throws(Errno) -> Fate in
                        try clean(path, in: directory, mode)
                    }
                    if case .deleted(let size) = outcome { tally.add(size) }
                } catch {
                    // A link, a socket, or a file that this user may not read: the cache has not created it.
                    if error.isNotRegularFile || error == .accessDenied {
                        others.append("\(place)/\(name)")
                    } else if error.concernsOneFile || error == .busy {
                        stuck.append("\(place)/\(name)")
                    } else {
                        throw error
                    }
                }
            }
        }
        state.value.withLock { $0.stuckLeftovers += stuck }
        if tally.count > 0 {
            if !request.isDryRun { store.counters.add(.sweptTemporary, tally.count) }
            state.value.withLock { [tally] in
                $0.report.removed[.staleTemporary, default: CollectionReport.Tally()] += tally
            }
        }
        return others
    }

    /// Sets the times of the permanent files to the present once they are a day old.
    ///
    /// systemd-tmpfiles, tmpreaper and similar programs delete files that are some days old. If a lock file was deleted, two
    /// processes could hold the same lock by two files.
    ///
    /// One system call if it is not time yet, else one for each of 142 files.
    private func freshenPermanentFiles() {
        // If it fails the next sweep tries again. The file whose time is checked is touched last, so that after a kill halfway
        // the next sweep does all of them.
        bestEffort { () throws(Errno) in
            let directory = store.directory
            let names = StoreLayout.lockNames + [StoreLayout.requestsLock, StoreLayout.formatLock]
            guard let last = names.last, let status = try directory.locks.presentStatus(of: last),
                Timestamp.now - status.modified > Self.freshness
            else { return }
            for name in StoreLayout.rootFiles {
                try ifExists { () throws(Errno) in try directory.root.touch(name) }
            }
            for name in names {
                try ifExists { () throws(Errno) in try directory.locks.touch(name) }
            }
        }
    }

    /// A tenth of the shortest age that distributions configure (10 days for /tmp).
    private static let freshness: Duration = .seconds(24 * 3600)
}

/// The partial downloads in `tmp/`, as a sweep has found them.
struct PartialBytes: Equatable {
    /// Bytes on disk.
    var allocated: Int64 = 0
    /// The most bytes that the usage may count for them: processes reserve room before they write.
    var mostCounted: Int64 = 0
}

extension Sweep {
    /// Returns the sizes of the partial downloads.
    ///
    /// In a dry run those that a sweep would have deleted don't count.
    ///
    /// About five system calls for the list of names, and four for each partial download.
    func partialBytes() throws(CacheError) -> PartialBytes {
        var bytes = PartialBytes()
        try describing("clean", path(of: StoreLayout.temporaries)) { () throws(Errno) in
            let temporaries: TemporaryArea
            do throws(Errno) {
                temporaries = try TemporaryArea(of: store.directory)
            } catch {
                // No directory has no partial downloads. The sweep has reported it already.
                guard error == .notDirectory || error == .tooManyLinks else { throw error }
                return
            }
            for name in try temporaries.directory.names() where name.hasPrefix(StoreLayout.partialPrefix) {
                guard let path = StoreLayout.path(ofTemporary: name) else { continue }
                do throws(Errno) {
                    let file = try temporaries.directory.open(path, .readOnly)
                    let isHeld = try !file.tryLock(.shared)
                    let status = try file.status()
                    if request.isDryRun, !isHeld, !mayBeResumed(status) { continue }
                    bytes.allocated += status.allocatedSize
                    bytes.mostCounted +=
                        isHeld ? PartialFile.mostCounted(status, in: store.directory) : status.allocatedSize
                } catch {
                    // The file was deleted, was not created by the cache, or is left alone and reported.
                    guard error == .noEntry || error.isNotRegularFile || error.concernsOneFile else {
                        throw error
                    }
                }
            }
        }
        return bytes
    }
}

extension Sweep {
    /// The outcome for a file in `tmp/` or `locks/`.
    private enum Fate {
        /// Deleted, with the bytes that it took on disk.
        case deleted(Int64)
        /// A process holds its lock, or may resume it.
        case spared
    }

    /// Deletes a file that no process holds locked, unless it is a partial download that may be resumed.
    private func clean(
        _ path: RelativePath,
        in directory: borrowing Directory,
        _ mode: LockMode
    ) throws(Errno) -> Fate {
        let file = try directory.open(path, .readOnly)
        let isPartial = path.description.hasPrefix(StoreLayout.partialPrefix)
        // First without a lock: a download that finds the file locked would not resume it.
        if isPartial, mayBeResumed(try file.status()) { return .spared }
        guard try file.tryLock(mode) else { return .spared }
        let status = try file.status()
        guard try directory.status(of: path).identity == status.identity else { return .spared }
        if isPartial, mayBeResumed(status) { return .spared }
        if !request.isDryRun {
            try directory.unlink(path)
            if isPartial { store.control.addUsage(bytes: -status.allocatedSize, entries: 0) }
        }
        return .deleted(status.allocatedSize)
    }

    /// Returns whether a partial download that no process holds is kept for a later one.
    private func mayBeResumed(_ status: FileStatus) -> Bool {
        let age = Timestamp.now - status.modified
        // The change time lies in the future if the clock was set back: the age is not known.
        let isAgeKnown = age > .zero - Record.clockTolerance
        return status.size > 0 && request.partialLife > .zero && isAgeKnown && age < request.partialLife
    }
}
