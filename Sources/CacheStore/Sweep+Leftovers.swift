// SPDX-License-Identifier: Apache-2.0

import Platform

extension Sweep {
    /// Deletes what killed processes have left, and keeps others from deleting what is to stay; false: time
    /// ran out.
    mutating func deleteLeftovers() throws(StoreError) -> Bool {
        try deleteStaleTemporaries()
        guard worker.mayGoOn() else { return false }
        try deleteStaleFlights()
        if !request.isDryRun { freshenPermanentFiles() }
        return worker.mayGoOn()
    }

    /// A temporary file is locked as long as its process lives.
    private mutating func deleteStaleTemporaries() throws(StoreError) {
        let place = "\(store.directory.path)/\(StoreLayout.temporaries)"
        let store = store
        let isDryRun = request.isDryRun
        let tallies = try describing("clean", place) { () throws(Errno) -> (SweepTally, [UnrecognisedFile]) in
            var tally = SweepTally()
            var unrecognised: [UnrecognisedFile] = []
            let temporaries: TemporaryArea
            do throws(Errno) {
                temporaries = try TemporaryArea(of: store.directory)
            } catch {
                // No directory: nothing of ours is in it, and puts can do without where they need no names.
                guard error == .notDirectory || error == .tooManyLinks else { throw error }
                return (tally, [UnrecognisedFile(path: "\(StoreLayout.temporaries)")])
            }
            for name in try temporaries.directory.names() {
                guard let path = TemporaryFile.path(ofOwn: name) else {
                    unrecognised.append(UnrecognisedFile(path: "\(StoreLayout.temporaries)/\(name)"))
                    continue
                }
                do throws(Errno) {
                    let size = try ifExists { () throws(Errno) in
                        try temporaries.directory.deleteUnlocked(path, isDryRun: isDryRun)
                    }
                    if let size, let size { tally.add(size) }
                } catch {
                    // A link, a socket, or a file that this user may not read: none that we have made.
                    guard error.tellsOfNoFile || error == .accessDenied else { throw error }
                    unrecognised.append(UnrecognisedFile(path: "\(StoreLayout.temporaries)/\(name)"))
                }
            }
            return (tally, unrecognised)
        }
        add(tallies.0)
        worker.state.value.withLock { $0.report.unrecognised += tallies.1 }
    }

    /// The lock of a computation is held as long as its process computes.
    ///
    /// Who acquires it while it is held here finds that its name has gone, and makes a new one.
    private mutating func deleteStaleFlights() throws(StoreError) {
        let place = "\(store.directory.path)/\(StoreLayout.locks)"
        let store = store
        let isDryRun = request.isDryRun
        let tally = try describing("clean", place) { () throws(Errno) -> SweepTally in
            var tally = SweepTally()
            for name in try store.directory.locks.names() where Self.isFlight(name) {
                do throws(Errno) {
                    let size = try ifExists { () throws(Errno) in
                        try store.directory.locks.deleteUnlocked(RelativePath(name), isDryRun: isDryRun)
                    }
                    if let size, let size { tally.add(size) }
                } catch {
                    // A link, a socket, or a file that this user may not read: none that we have made.
                    guard error.tellsOfNoFile || error == .accessDenied else { throw error }
                }
            }
            return tally
        }
        add(tally)
    }

    private static func isFlight(_ name: String) -> Bool {
        let prefix = StoreLayout.flightPrefix
        return name.hasPrefix(prefix) && Digest(hexadecimal: String(name.dropFirst(prefix.utf8.count))) != nil
    }

    private mutating func add(_ leftovers: SweepTally) {
        if leftovers.count == 0 { return }
        if !request.isDryRun { store.counters.add(.sweptTemporary, leftovers.count) }
        worker.state.value.withLock { state in
            state.removed[.staleTemporary].count += leftovers.count
            state.removed[.staleTemporary].bytes += leftovers.bytes
        }
    }

    /// Dates the files anew that stay, once they are a day old: systemd-tmpfiles, tmpreaper and their like
    /// delete what is older than some days, and two processes with different lock files exclude nobody.
    ///
    /// One system call where it is not time yet, else one for each of 136 files.
    private func freshenPermanentFiles() {
        // Nobody is hurt where it fails; the next sweep tries again. The file looked at is dated last, so that a
        // kill half way does not count as done.
        bestEffort { () throws(Errno) in
            let names = StoreLayout.lockNames + [StoreLayout.formatLock]
            guard let last = names.last,
                let status = try ifExists({ () throws(Errno) in try store.directory.locks.status(of: last) }),
                Timestamp.now - status.modified > Self.freshness
            else { return }
            for name in StoreLayout.rootFiles {
                try ifExists { () throws(Errno) in try store.directory.root.touch(name) }
            }
            for name in names {
                try ifExists { () throws(Errno) in try store.directory.locks.touch(name) }
            }
        }
    }

    /// A tenth of the shortest age that distributions configure (10 days for /tmp).
    private static let freshness: Duration = .seconds(24 * 3600)
}

extension Directory {
    /// Deletes a file that nobody holds locked; its bytes on disk, or nil where somebody does.
    fileprivate func deleteUnlocked(_ path: RelativePath, isDryRun: Bool) throws(Errno) -> Int64? {
        let file = try open(path, .readOnly)
        guard try file.tryLock(.exclusive) else { return nil }
        let status = try file.status()
        guard try self.status(of: path).identity == status.identity else { return nil }
        if !isDryRun { try unlink(path) }
        return status.allocatedSize
    }
}
