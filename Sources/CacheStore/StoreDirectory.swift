// SPDX-License-Identifier: Apache-2.0

package import Platform

/// In which of its two forms a record is written.
///
/// Both are always understood.
package enum RecordForm: Sendable, Equatable {
    /// The extended attribute `user.dc` of an otherwise empty file.
    case attribute
    /// The contents of the file.
    case sidecar
}

/// Permission bits of what the cache makes: the owner's only (the umask can take away, never add).
enum FileMode {
    static let directory: UInt32 = 0o700
    static let file: UInt32 = 0o600
    /// Objects never change, so nobody may write them, not even their owner by mistake.
    static let object: UInt32 = 0o400
}

/// An open cache directory: its parts, and what its file system can do.
///
/// Opening costs fifteen system calls, however much the directory holds; nothing is scanned.
package final class StoreDirectory: Sendable {
    /// As the user gave it.
    package let path: String
    package let capabilities: Capabilities
    package let root: Directory
    let objects: Directory
    let entries: Directory
    let locks: Directory
    /// False where the file system or the permissions allow no writing: then only reading works.
    package let isWritable: Bool
    /// In such portions the file system gives out space.
    let blockSize: Int64
    let fileSystem: FileSystemKind
    /// Whether `config.json` says that a file system is local which does not look so.
    package let isAssumedLocal: Bool
    private let knownIdentities = Locked<[FileStatus.Identity]?>(nil)

    /// Opens the cache at `path`, creating it and the directories above it where they are missing.
    ///
    /// - Throws: ``StoreError/Code/notACache`` for a directory that holds anything else,
    ///   ``StoreError/Code/newerFormat``, and what the file system says.
    package init(opening path: String, assuming assumed: Capabilities? = nil) throws(StoreError) {
        self.path = path
        let setup = StoreSetup(path: path, mapping: assumed?.sharedMapping)
        root = try setup.openRoot()
        // Before anything is made in it.
        try setup.checkTrust(in: root)
        try setup.prepare(root)
        try setup.checkTrust(inPartsOf: root)
        objects = try setup.openPart(StoreLayout.objects, of: root)
        entries = try setup.openPart(StoreLayout.entries, of: root)
        locks = try setup.openPart(StoreLayout.locks, of: root)
        let found = try setup.probe(locks)
        var capabilities = found.capabilities
        let fileSystem = try setup.fileSystem(of: root)
        isAssumedLocal = fileSystem.kind.isRemote && FollowedConfiguration.assumesLocal(root, path)
        capabilities.sharedMapping = SharedMapping(on: fileSystem.kind, isAssumedLocal: isAssumedLocal)
        blockSize = fileSystem.blockSize
        self.fileSystem = fileSystem.kind
        self.capabilities = assumed ?? capabilities
        isWritable = found.isWritable
    }

    /// Whether the path still leads to this directory, and its names to the parts that are open here, and not to nothing
    /// or to others.
    ///
    /// Four system calls, and once four more.
    package func isCurrent() throws(StoreError) -> Bool {
        try describing("look at the cache directory", path) { () throws(Errno) in
            let own = try ownIdentities()
            let present = try ifExists { () throws(Errno) in try FileStatus.of(path).identity }
            if present != own[0] { return false }
            for (name, identity) in zip(
                [StoreLayout.objects, StoreLayout.entries, StoreLayout.locks],
                own.dropFirst()
            ) {
                let present = try ifExists { () throws(Errno) in try root.status(of: name).identity }
                if present != identity { return false }
            }
            return true
        }
    }

    /// Of the root and the parts that are open.
    private func ownIdentities() throws(Errno) -> [FileStatus.Identity] {
        if let known = knownIdentities.withLock({ $0 }) { return known }
        let identities = [
            try root.descriptor.status().identity, try objects.descriptor.status().identity,
            try entries.descriptor.status().identity, try locks.descriptor.status().identity,
        ]
        knownIdentities.withLock { $0 = identities }
        return identities
    }
}

/// What a directory's file system can do, found by trying once when it is opened.
package struct Capabilities: Sendable, Equatable {
    /// Extended attributes of the user's.
    package enum Attributes: Sendable, Equatable {
        /// They can be set and read.
        case writable
        /// They may not be set here (a sandbox, a file system mounted for reading), but may well be there.
        case readable
        /// The file system knows none.
        case absent
    }

    package var attributes: Attributes
    /// Whether there are files without a name (O_TMPFILE) that can be given one later.
    package var unnamedFiles: Bool
    /// How the processes that use the directory share memory.
    package var sharedMapping = SharedMapping.file
}

extension StoreDirectory {
    /// The directory itself (".") and all that is in it but entries and objects, down to shards, locks and temporary
    /// files, with names relative to the directory.
    ///
    /// Up to 700 system calls. What has gone meanwhile, or can't be listed, is left out.
    package func ownFiles() throws(Errno) -> [(name: String, status: FileStatus)] {
        var names = try root.names()
        for part in names where StoreLayout.partNames.contains(part) {
            do throws(Errno) {
                names += try root.openDirectory(RelativePath(part)).names().map { "\(part)/\($0)" }
            } catch {
                // The part's own status says why.
                guard [.accessDenied, .noEntry, .notDirectory, .tooManyLinks].contains(error) else {
                    throw error
                }
            }
        }
        var files = [(name: ".", status: try root.descriptor.status())]
        for name in names where name.utf8.count <= RelativePath.capacity {
            let status = try ifExists { () throws(Errno) in try root.status(of: RelativePath(name)) }
            if let status { files.append((name, status)) }
        }
        return files
    }

    /// Bytes on disk of the control file, where it is mapped, a block for each of 512 shards, and some for the small
    /// files.
    var usualOverhead: Int64 {
        (capabilities.sharedMapping == .file ? allocation(of: ControlLayout.byteCount) : 0) + 544 * blockSize
    }

    /// What a file of `count` bytes takes on disk: an estimate that needs no call.
    ///
    /// At most 4 EiB, which leaves room for sums: a file with holes can be as long as a file can be.
    func allocation(of count: Int) -> Int64 {
        let count = min(Int64(count), 1 << 62)
        return (count + blockSize - 1) / blockSize * blockSize
    }
}
