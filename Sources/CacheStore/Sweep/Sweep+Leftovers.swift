// SPDX-License-Identifier: Apache-2.0

import Platform

extension Sweep {
    /// Deletes what killed processes have left, and keeps others from deleting what is to stay; false: time
    /// ran out.
    mutating func deleteLeftovers() throws(CacheError) -> Bool {
        let others = try deleteStaleTemporaries()
        state.value.withLock { $0.report.unrecognised += others }
        guard pacer.mayGoOn() else { return false }
        // Copies on their way to a place in the root, where nothing can be moved there.
        _ = try deleteUnlocked(in: parts.directory.root, ".", path: StoreLayout.path(ofTemporary:))
        // The lock of a computation is held as long as its process computes, and a permit as long as somebody has it.
        // Who acquires one that was looked at here finds that its name has gone, and makes a new one. Shared, so that who
        // can't get it sees that nobody holds it; there is one collection at a time.
        _ = try deleteUnlocked(in: parts.directory.locks, StoreLayout.locks, .shared) { name in
            StoreLayout.isPassingLock(name) ? RelativePath(name) : nil
        }
        if !request.isDryRun { freshenPermanentFiles() }
        return pacer.mayGoOn()
    }

    /// A temporary file is locked as long as its process lives.
    private func deleteStaleTemporaries() throws(CacheError) -> [String] {
        let temporaries: TemporaryArea
        do throws(Errno) {
            temporaries = try TemporaryArea(of: parts.directory)
        } catch {
            // No directory: nothing of ours is in it, and puts can do without where they need no names.
            if error == .notDirectory || error == .tooManyLinks { return ["\(StoreLayout.temporaries)"] }
            throw CacheError(errno: error, "clean", path: path(of: StoreLayout.temporaries))
        }
        return try deleteUnlocked(in: temporaries.directory, StoreLayout.temporaries) {
            StoreLayout.path(ofTemporary: $0)
        }
    }

    private func path(of place: RelativePath) -> String { "\(parts.directory.path)/\(place)" }

    /// Deletes the files in `directory` that nobody holds locked, of those for whose names `path` gives one; the names
    /// of the others.
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

    /// The same of the files with these names.
    func deleteUnlocked(
        _ names: [String],
        in directory: borrowing Directory,
        _ place: RelativePath,
        _ mode: LockMode = .exclusive,
        path: (String) -> RelativePath? = StoreLayout.path(ofTemporary:)
    ) throws(CacheError) -> [String] {
        var tally = CollectionReport.Tally()
        var others: [String] = []
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
                    // A link, a socket, or a file that this user may not read: none that we have made.
                    guard error.tellsOfNoFile || error == .accessDenied else { throw error }
                    others.append("\(place)/\(name)")
                }
            }
        }
        if tally.count > 0 {
            if !request.isDryRun { parts.counters.add(.sweptTemporary, tally.count) }
            state.value.withLock { [tally] in
                $0.report.removed[.staleTemporary, default: CollectionReport.Tally()] += tally
            }
        }
        return others
    }

    /// Dates the files anew that stay, once they are a day old: systemd-tmpfiles, tmpreaper and their like
    /// delete what is older than some days, and two processes with different lock files exclude nobody.
    ///
    /// One system call where it is not time yet, else one for each of 142 files.
    private func freshenPermanentFiles() {
        // Nobody is hurt where it fails; the next sweep tries again. The file looked at is dated last, so that a
        // kill half way does not count as done.
        bestEffort { () throws(Errno) in
            let directory = parts.directory
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
    /// The most bytes that the usage may count for them: processes reserve room ahead of what they write.
    var mostCounted: Int64 = 0
}

extension Sweep {
    /// Looks at the partial downloads.
    ///
    /// One call for the list of names, and four for each partial download.
    func partialBytes() throws(CacheError) -> PartialBytes {
        var bytes = PartialBytes()
        try describing("clean", path(of: StoreLayout.temporaries)) { () throws(Errno) in
            let temporaries: TemporaryArea
            do throws(Errno) {
                temporaries = try TemporaryArea(of: parts.directory)
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
                    bytes.allocated += status.allocatedSize
                    bytes.mostCounted +=
                        isHeld ? PartialFile.mostCounted(status, in: parts.directory) : status.allocatedSize
                } catch {
                    // It is gone, or this program has not made it.
                    guard error == .noEntry || error.tellsOfNoFile || error == .accessDenied else {
                        throw error
                    }
                }
            }
        }
        return bytes
    }
}

extension Sweep {
    /// What became of a file in `tmp/` or `locks/`.
    private enum Fate {
        /// So many bytes on disk.
        case deleted(Int64)
        /// A process has it locked, or may go on with it.
        case spared
    }

    /// Deletes a file that nobody holds locked, but for what somebody may still go on with.
    private func clean(
        _ path: RelativePath,
        in directory: borrowing Directory,
        _ mode: LockMode
    ) throws(Errno) -> Fate {
        let file = try directory.open(path, .readOnly)
        let isPartial = path.description.hasPrefix(StoreLayout.partialPrefix)
        guard try file.tryLock(mode) else { return .spared }
        let status = try file.status()
        guard try directory.status(of: path).identity == status.identity else { return .spared }
        if isPartial, status.size > 0, Timestamp.now - status.modified < request.partialLife {
            return .spared
        }
        if !request.isDryRun {
            try directory.unlink(path)
            if isPartial { parts.control.addUsage(bytes: -status.allocatedSize, entries: 0) }
        }
        return .deleted(status.allocatedSize)
    }
}
