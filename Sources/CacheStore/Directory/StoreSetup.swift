// SPDX-License-Identifier: Apache-2.0

import Platform

/// Creating a cache directory, recognising one, and finding out what its file system can do.
///
/// Several processes may do this at once, and any may be killed half way. The order makes that safe:
/// `locks/format` comes first and marks the directory as ours, the `format` file comes last and says
/// that all the rest is there.
struct StoreSetup {
    let path: String
    /// What the file system is taken to be capable of; nil: what it is found to be.
    let assumed: Capabilities?
    /// The form of the records, should the directory be made.
    var form = RecordForm.attribute

    /// How long one process waits for another that is setting up the same directory.
    ///
    /// That takes milliseconds; beside others that write as fast as they can seconds, as three files are written
    /// through to the medium (1.5 s, at most 2.7, beside four that write to the same ext4); and where whoever does it is
    /// killed, another one begins anew. More than 10 s were seen where that happened again and again. A minute, to be
    /// beyond that; only one that is stopped takes longer.
    private static let patience: Duration = .seconds(60)

    /// Opens the root, and makes it and what is above it where missing.
    ///
    /// Symbolic links on the way to it are the user's and are followed; below it none is.
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

    /// Of the directory itself or what is above it, without a word of what is in its place: that may be a file of the
    /// user's that is to stay where it is, and so are the links on the way to it.
    private func failure(_ error: Errno, _ operation: String) -> CacheError {
        let code = CacheError(errno: error, operation, path: path).code
        return CacheError(code, to: operation, path: path, cause: error)
    }

    /// Of a directory above the cache's: what the umask leaves of it, as with `mkdir -p`.
    ///
    /// It is the user's, for other things, too; only the cache's own is private.
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

    /// Opens one of the directories inside, which must be a directory and no link, and makes it anew where somebody has
    /// removed it.
    func openPart(_ name: RelativePath, of root: borrowing Directory) throws(CacheError) -> Directory {
        let present = try describing("open a part of the cache", "\(path)/\(name)") { () throws(Errno) in
            try ifExists { () throws(Errno) in try root.openDirectory(name) }
        }
        if let present { return present }
        // Whoever else has the cache open goes on with the new part within a second.
        let lock = try lockFormat(in: root)
        try makeParts(in: root)
        lock.release()
        return try describing("open a part of the cache", "\(path)/\(name)") { () throws(Errno) in
            try root.openDirectory(name)
        }
    }

    /// Makes sure that this is a cache of a version that we know, setting up an empty directory.
    ///
    /// - Returns: the form of the records that the directory was made with.
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

    /// Waits for whoever sets up the directory, too.
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

    /// The form of the records that the format file names; nil: there is no such file yet.
    private func recordedForm(_ root: borrowing Directory) throws(CacheError) -> RecordForm? {
        let bytes = try describing("read", "\(path)/format") { () throws(Errno) -> [UInt8]?? in
            do throws(Errno) {
                return try ifExists { () throws(Errno) in
                    try root.open(StoreLayout.format, .readOnly).readToEnd(limit: 256)
                }
            } catch {
                // Something other than a file doesn't state a version either.
                if error.tellsOfNoFile { return .some(nil) }
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
        // What is there may be in use by processes that had it open before the format file was deleted. Then the
        // control file is made later, if need be, in a way that tells those processes and waits for them.
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

    /// The form for a directory that is set up: sidecars where this process wants them, or can't read attributes.
    ///
    /// An empty entry may have its record in an attribute: it was made before the format file was deleted.
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

    /// Makes what is missing, the entries last.
    ///
    /// - Parameter isNew: as far as is known; then with the control file of an empty cache. Whoever opens the directory of
    ///   the entries finds it: who writes without it is not told of in its filter, and would write what nobody finds.
    private func makeParts(in root: borrowing Directory, isNew: Bool = false) throws(CacheError) {
        try makePart(StoreLayout.objects, in: root)
        try makePart(StoreLayout.temporaries, in: root)
        try makeLocks(in: root)
        if isNew { makeControl(in: root) }
        try makePart(StoreLayout.entries, in: root)
    }

    /// Makes the control file, and then the directory of the entries: so nobody can write without it, and it is good at
    /// once; but where another process was first with either, as `locks/` was deleted meanwhile, it is completed, or
    /// made, later.
    ///
    /// It is large, as these files go, and may have to be in memory: there may be no room for it just now, or no `/dev/shm`
    /// that this process may write.
    private func makeControl(in root: borrowing Directory) {
        // Whatever keeps it from being made: the cache works without, and each process that opens it tries again.
        bestEffort { () throws(Errno) in
            let fileSystem = try root.descriptor.fileSystem().kind
            let mapping = assumed?.sharedMapping ?? SharedMapping(on: fileSystem)
            if mapping == .none { return }
            let rules = try RuleFile.marks(in: root)
            try drafting(in: root) { (file, _) throws(Errno) -> Void in
                try ControlMaking.make(in: file, mapping, of: path, rules) { () throws(Errno) in
                    try root.link(file, as: StoreLayout.control)
                    return try root.makeDirectoryIfMissing(StoreLayout.entries, mode: FileMode.directory)
                }
            }
        }
    }

    /// Makes all lock files at once: on a full file system, when a sweep is needed most, none could be made.
    private func makeLocks(in root: borrowing Directory) throws(CacheError) {
        try describing("create", "\(path)/\(StoreLayout.locks)") { () throws(Errno) in
            let locks = try root.openDirectory(StoreLayout.locks)
            for name in StoreLayout.lockNames {
                try locks.open(name, [.readWrite, .create], mode: FileMode.file).close()
            }
        }
    }

    /// Writes one of the small files whole or not at all: under another name first.
    private func write(
        _ text: String,
        to name: RelativePath,
        in root: borrowing Directory
    ) throws(CacheError) {
        try describing("write", "\(path)/\(name)") { () throws(Errno) in
            try drafting(in: root) { (file, publish) throws(Errno) in
                try file.writeAll(text.utf8Span.span)
                // Once in a directory's life: an empty format file after a power cut would make it somebody else's.
                try file.synchronize()
                try publish(name)
            }
        }
    }

    /// Has `write` fill a new file and give it its place, by `publish`, which replaces what is there, or in another way.
    private func drafting(
        in root: borrowing Directory,
        _ write: (borrowing FileDescriptor, _ publish: (RelativePath) throws(Errno) -> Void) throws(Errno) ->
            Void
    ) throws(Errno) {
        let temporaries = try root.openDirectory(StoreLayout.temporaries)
        // Its own: where `locks/` was deleted meanwhile, another process may be setting up at the same time.
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
