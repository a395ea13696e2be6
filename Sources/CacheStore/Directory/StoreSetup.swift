// SPDX-License-Identifier: Apache-2.0

import Platform

/// Creates a cache directory, recognizes an existing one, and probes its file system.
///
/// Several processes may do this at the same time, and any of them may be killed halfway. The order makes that safe:
/// `locks/format` comes first and marks the directory as a cache; the `format` file comes last and shows that all the rest
/// exists.
struct StoreSetup {
    let path: String
    /// The capabilities to assume; nil to probe the file system.
    let assumed: Capabilities?
    /// The form of the records if the directory is created.
    var form = RecordForm.attribute

    /// How long one process waits for another that is setting up the same directory.
    ///
    /// Setting up takes milliseconds. While other processes write as fast as they can, it takes seconds, because three
    /// files are synced to the medium (1.5 s, at most 2.7 s, while four processes write to the same ext4). If the process
    /// is killed, another one starts again; when that happened repeatedly, more than 10 s were seen. A minute is beyond
    /// that: only a stopped process takes longer.
    private static let patience: Duration = .seconds(60)

    /// Opens the root, creating it and the directories above it if they are missing.
    ///
    /// Symbolic links on the path to the root belong to the user and are followed; below the root no link is followed.
    func openRoot() throws(CacheError) -> Directory {
        do throws(Errno) {
            return try Directory(opening: path)
        } catch {
            guard error == .noEntry else { throw failure(error, "open the cache directory") }
        }
        try makeDirectories(upTo: path, mode: FileMode.directory)
        return try describing("open the cache directory", path) { () throws(Errno) in
            try Directory(opening: path)
        }
    }

    /// Returns the error for the directory itself or one above it, without describing the object in its place.
    ///
    /// A description would advise the user to move that object away. But the object may be a file of the user that must
    /// stay in place, and so may the links on the path.
    private func failure(_ error: Errno, _ operation: String) -> CacheError {
        let code = CacheError(errno: error, operation, path: path).code
        return CacheError(code, to: operation, path: path, cause: error)
    }

    /// The mode of the directories above the cache's, reduced by the umask as with `mkdir -p`.
    ///
    /// These directories belong to the user and may serve other purposes; only the cache's own directory is private.
    private static let parentMode: UInt32 = 0o777

    private func makeDirectories(upTo path: String, mode: UInt32) throws(CacheError) {
        do throws(Errno) {
            try unlessExists { () throws(Errno) in try Directory.make(path, mode: mode) }
        } catch {
            let parent = path.split(separator: "/", omittingEmptySubsequences: true).dropLast()
            guard error == .noEntry, !parent.isEmpty else {
                throw failure(error, "create the cache directory")
            }
            let above = (path.hasPrefix("/") ? "/" : "") + parent.joined(separator: "/")
            try makeDirectories(upTo: above, mode: Self.parentMode)
            try describing("create the cache directory", path) { () throws(Errno) -> Void in
                try unlessExists { () throws(Errno) in try Directory.make(path, mode: mode) }
            }
        }
    }

    /// Opens a subdirectory of the root, which must not be a link; recreates it if it was removed.
    func openPart(_ name: RelativePath, of root: borrowing Directory) throws(CacheError) -> Directory {
        let present = try describing("open a part of the cache", "\(path)/\(name)") { () throws(Errno) in
            try ifExists { () throws(Errno) in try root.openDirectory(name) }
        }
        if let present { return present }
        // Other processes that have the cache open switch to the new part within a second.
        let lock = try lockFormat(in: root)
        try makeParts(in: root)
        lock.release()
        return try describing("open a part of the cache", "\(path)/\(name)") { () throws(Errno) in
            try root.openDirectory(name)
        }
    }

    /// Ensures that this is a cache of a known version, and sets up an empty directory.
    ///
    /// - Returns: The form of records that the directory was created with.
    func prepare(_ root: borrowing Directory) throws(CacheError) -> RecordForm {
        if let form = try recordedForm(root) { return form }
        try checkOwnership(of: root)
        let lock = try lockFormat(in: root)
        let recorded = try recordedForm(root)
        let form: RecordForm
        if let recorded { form = recorded } else { form = try setUp(root) }
        lock.release()
        return form
    }

    /// Acquires the `format` lock, waiting for any process that sets up the directory.
    private func lockFormat(in root: borrowing Directory) throws(CacheError) -> LockFile {
        try makePart(StoreLayout.locks, in: root)
        let lock = try describing("lock", "\(path)/locks/format") { () throws(Errno) in
            try LockFile.acquire(
                StoreLayout.formatLock,
                in: root.openDirectory(StoreLayout.locks),
                patience: Self.patience
            )
        }
        guard let lock else {
            throw CacheError(.busy, to: "set up the cache directory", path: path, cause: .timedOut)
        }
        return lock
    }

    /// Returns the form of records that the format file names; nil if there is no such file yet.
    private func recordedForm(_ root: borrowing Directory) throws(CacheError) -> RecordForm? {
        let bytes = try describing("read", "\(path)/format") { () throws(Errno) -> [UInt8]?? in
            do throws(Errno) {
                return try ifExists { () throws(Errno) in
                    try root.open(StoreLayout.format, .readOnly).readToEnd(limit: 256)
                }
            } catch {
                // If an object other than a file has this name, it states no version either.
                if error.isNotRegularFile { return .some(nil) }
                throw error
            }
        }
        guard let bytes else { return nil }
        var words = String(decoding: bytes ?? [], as: UTF8.self).split(whereSeparator: \.isWhitespace)
        let hasSidecars = words.count == 3 && words[2] == StoreLayout.sidecarsWord
        if hasSidecars { words.removeLast() }
        guard words.count == 2, words[0] == "diskcache", let version = Int(words[1]), version > 0 else {
            let words = try hasBegun(root) ? "its file `format` is not the cache's" : nil
            throw CacheError(.notACache, to: "read the format of", path: path, detail: words)
        }
        guard version <= StoreLayout.formatVersion else {
            throw CacheError(.newerFormat, to: "read format \(version) of", path: path)
        }
        return hasSidecars ? .sidecar : .attribute
    }

    private func makePart(_ name: RelativePath, in root: borrowing Directory) throws(CacheError) {
        try describing("create", "\(path)/\(name)") { () throws(Errno) -> Void in
            try root.makeDirectoryIfMissing(name, mode: FileMode.directory)
        }
    }

    private func setUp(_ root: borrowing Directory) throws(CacheError) -> RecordForm {
        // Existing entries may be in use by processes that had the directory open before the format file was deleted. Then
        // the control file is created later, if needed, in a way that notifies those processes and waits for them.
        let isNew = try describing("look at", "\(path)/\(StoreLayout.entries)") { () throws(Errno) in
            try root.presentStatus(of: StoreLayout.entries) == nil
        }
        try makeParts(in: root, isNew: isNew)
        try write(StoreLayout.readmeText, to: StoreLayout.readme, in: root)
        try write(StoreLayout.cacheDirectoryTagText, to: StoreLayout.cacheDirectoryTag, in: root)
        let form = try formToRecord(root)
        let words =
            "diskcache \(StoreLayout.formatVersion)\(form == .sidecar ? " \(StoreLayout.sidecarsWord)" : "")\n"
        try write(words, to: StoreLayout.format, in: root)
        return form
    }

    /// Returns the form of records for a directory that is being set up.
    ///
    /// The form is sidecars if this process wants them or can't read attributes, unless there is an empty entry: its record
    /// may be in an attribute, as the entry may have been created before the format file was deleted.
    private func formToRecord(_ root: borrowing Directory) throws(CacheError) -> RecordForm {
        let locks = try openPart(StoreLayout.locks, of: root)
        if form == .attribute, try probe(root, locks).capabilities.attributes != .absent { return .attribute }
        return try describing("look at", "\(path)/\(StoreLayout.entries)") { () throws(Errno) -> RecordForm in
            let entries = try root.openDirectory(StoreLayout.entries)
            for name in StoreLayout.shards {
                let shard = try ifFiled { () throws(Errno) in try entries.openDirectory(name) }
                guard let shard else { continue }
                for name in try shard.names() where Digest(hexadecimal: name) != nil {
                    let status = try shard.presentStatus(of: RelativePath(name))
                    if let status, status.kind == .regular, status.size == 0 { return .attribute }
                }
            }
            return .sidecar
        }
    }

    /// Creates the missing parts, the directory of the entries last.
    ///
    /// - Parameter isNew: Whether the directory seems to be new; then it gets the control file of an empty cache. That file
    ///   exists before any process can open the directory of the entries: a process that wrote without it would not add its
    ///   keys to the filter, and no process would find its entries.
    private func makeParts(in root: borrowing Directory, isNew: Bool = false) throws(CacheError) {
        try makePart(StoreLayout.objects, in: root)
        try makePart(StoreLayout.temporaries, in: root)
        try makeLocks(in: root)
        if isNew { makeControl(in: root) }
        try makePart(StoreLayout.entries, in: root)
    }

    /// Creates the control file, and then the directory of the entries.
    ///
    /// In this order, no process can write without the control file, so the file is ready at once. If another process was
    /// first to create either of them, because `locks/` was deleted meanwhile, the control file is completed or created
    /// later.
    ///
    /// Creating it may fail: it is large compared with the other files, and may have to be in memory. There may be no space
    /// for it at present, or no `/dev/shm` that this process may write.
    private func makeControl(in root: borrowing Directory) {
        // If the file can't be created, the cache works without it, and each process that opens the cache tries again.
        bestEffort { () throws(Errno) in
            let fileSystem = try root.descriptor.fileSystem().kind
            let mapping = assumed?.sharedMapping ?? SharedMapping(on: fileSystem)
            if mapping == .none { return }
            let rules = try RuleFile.marks(in: root)
            let remote = try RemoteMarks(in: root)
            try drafting(in: root) { (file, _) throws(Errno) -> Void in
                try ControlMaking.make(in: file, mapping, of: path, rules, remote) { () throws(Errno) in
                    try root.link(file, as: StoreLayout.control)
                    return try root.makeDirectoryIfMissing(StoreLayout.entries, mode: FileMode.directory)
                }
            }
        }
    }

    /// Creates all lock files now: on a full file system, where a sweep is needed most, none could be created.
    private func makeLocks(in root: borrowing Directory) throws(CacheError) {
        try describing("create", "\(path)/\(StoreLayout.locks)") { () throws(Errno) in
            let locks = try root.openDirectory(StoreLayout.locks)
            for name in StoreLayout.lockNames {
                try locks.open(name, [.readWrite, .create], mode: FileMode.file).close()
            }
        }
    }

    /// Writes one of the small files atomically, under another name first.
    private func write(
        _ text: String,
        to name: RelativePath,
        in root: borrowing Directory
    ) throws(CacheError) {
        try describing("write", "\(path)/\(name)") { () throws(Errno) in
            try drafting(in: root) { (file, publish) throws(Errno) in
                try file.writeAll(text.utf8Span.span)
                // This happens once in a directory's life. If a power cut left the format file empty, the directory would
                // not be recognized as a cache.
                try file.synchronize()
                try publish(name)
            }
        }
    }

    /// Creates a new file, which `write` fills and publishes.
    ///
    /// To publish the file, `write` calls `publish`, which replaces an existing file, or does it in another way.
    private func drafting(
        in root: borrowing Directory,
        _ write: (borrowing FileDescriptor, _ publish: (RelativePath) throws(Errno) -> Void) throws(Errno) ->
            Void
    ) throws(Errno) {
        let temporaries = try root.openDirectory(StoreLayout.temporaries)
        // The name is unique: if `locks/` was deleted meanwhile, another process may be setting up the directory at the
        // same time.
        let draft = StoreLayout.freshTemporary("setup-")
        let file = try temporaries.open(draft, [.readWrite, .create], mode: FileMode.file)
        defer { bestEffort { () throws(Errno) in try temporaries.unlink(draft) } }
        try write(file) { (name) throws(Errno) in
            do throws(Errno) {
                try temporaries.rename(draft, to: root, name)
            } catch {
                guard error.leavesCopy else { throw error }
                try root.publish(copyOf: file, as: name)
            }
        }
    }
}
