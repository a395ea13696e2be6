// SPDX-License-Identifier: Apache-2.0

import Platform

extension Sweep {
    /// Deletes the files that killed processes have left, and makes sure that other programs do not delete the permanent
    /// files; returns false if the time ran out.
    mutating func deleteLeftovers() throws(CacheError) -> Bool {
        let others = try deleteStaleTemporaries()
        state.value.withLock { $0.report.unrecognised += others }
        guard pacer.mayGoOn() else { return false }
        // A file that can be neither linked nor moved from `tmp/` to the root is written in the root, under a temporary
        // name. A killed process may have left it there.
        _ = try deleteUnlocked(in: store.directory.root, ".", path: StoreLayout.path(ofTemporary:))
        // The lock file of a computation, or of a permit, is locked while a process computes or has the permit. A process
        // that acquires such a file while it is deleted here finds the name missing and creates a new file. The lock
        // taken here is shared, so that such a process does not mistake this process for the holder. That suffices,
        // because only one collection runs at a time.
        _ = try deleteUnlocked(in: store.directory.locks, StoreLayout.locks, .shared) { name in
            StoreLayout.isPassingLock(name) ? RelativePath(name) : nil
        }
        if !request.isDryRun { freshenPermanentFiles() }
        return pacer.mayGoOn()
    }

    /// Deletes the temporary files of dead processes; returns the names of files that do not belong to the cache.
    ///
    /// A temporary file stays locked as long as its process lives.
    private func deleteStaleTemporaries() throws(CacheError) -> [String] {
        let temporaries: TemporaryArea
        do throws(Errno) {
            temporaries = try TemporaryArea(of: store.directory)
        } catch {
            // Without the directory there are no temporary files. Puts that need no named file work without it.
            if error == .notDirectory || error == .tooManyLinks { return ["\(StoreLayout.temporaries)"] }
            throw CacheError(errno: error, "clean", path: path(of: StoreLayout.temporaries))
        }
        return try deleteUnlocked(in: temporaries.directory, StoreLayout.temporaries) {
            StoreLayout.path(ofTemporary: $0)
        }
    }

    private func path(of place: RelativePath) -> String { "\(store.directory.path)/\(place)" }

    /// Deletes the files in `directory` for whose names `path` returns a path, unless a process has locked them; returns
    /// the names of the other files.
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

    /// Deletes those of the named files for which `path` returns a path, unless a process has locked them; returns the
    /// names of the other files.
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
                    // A link, a socket, or a file that this user may not read was not created by the cache.
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

    /// Sets the times of the permanent files to the current time once they are a day old.
    ///
    /// systemd-tmpfiles, tmpreaper and similar programs delete files that are a few days old. If one deleted a lock file,
    /// two processes could hold the same lock through different files.
    ///
    /// One system call if the files are younger than a day, otherwise one more for each of 143 files.
    private func freshenPermanentFiles() {
        // If this fails, the next sweep tries again. The file whose time is checked is touched last: after a kill
        // halfway, the next sweep touches all files.
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

    /// A tenth of the shortest age that distributions configure for such programs (10 days for /tmp).
    private static let freshness: Duration = .seconds(24 * 3600)
}

/// The sizes of the partial downloads in `tmp/`, as a sweep has found them.
struct PartialBytes: Equatable {
    /// Bytes on disk.
    var allocated: Int64 = 0
    /// The most bytes that the usage may count for them: a process counts the space that it reserves before it writes.
    var mostCounted: Int64 = 0
}

extension Sweep {
    /// Returns the sizes of the partial downloads.
    ///
    /// A dry run omits those that a sweep would have deleted.
    ///
    /// About five system calls for the list of names, and four for each partial download.
    func partialBytes() throws(CacheError) -> PartialBytes {
        var bytes = PartialBytes()
        try describing("clean", path(of: StoreLayout.temporaries)) { () throws(Errno) in
            let temporaries: TemporaryArea
            do throws(Errno) {
                temporaries = try TemporaryArea(of: store.directory)
            } catch {
                // Without the directory there are no partial downloads. The sweep has already reported the error.
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
                    // The file was deleted, does not belong to the cache, or is left alone and already reported.
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
    /// What the sweep did with a file in `tmp/` or `locks/`.
    private enum Fate {
        /// Deleted; the associated value is its size on disk in bytes.
        case deleted(Int64)
        /// Kept, because a process has locked it or may resume it.
        case spared
    }

    /// Deletes a file, unless a process has locked it or it is a partial download that may be resumed.
    private func clean(
        _ path: RelativePath,
        in directory: borrowing Directory,
        _ mode: LockMode
    ) throws(Errno) -> Fate {
        let file = try directory.open(path, .readOnly)
        let isPartial = path.description.hasPrefix(StoreLayout.partialPrefix)
        // Check before locking the file: a download that finds the file locked does not resume it.
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

    /// Returns whether to keep a partial download, which no process has locked, for a process that resumes it.
    private func mayBeResumed(_ status: FileStatus) -> Bool {
        let age = Timestamp.now - status.modified
        // If the clock was set back, the modification time may lie in the future; then the age is unknown.
        let isAgeKnown = age > .zero - Record.clockTolerance
        return status.size > 0 && request.partialLife > .zero && isAgeKnown && age < request.partialLife
    }
}
