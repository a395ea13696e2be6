// SPDX-License-Identifier: Apache-2.0

package import Platform

/// An open cache directory: its parts, and the capabilities of its file system.
///
/// Opening costs fifteen system calls, however much the directory holds; nothing is scanned.
package final class StoreDirectory: Sendable {
    /// The path as given by the user.
    package let path: String
    package let root: Directory
    let objects: Directory
    let entries: Directory
    let locks: Directory
    package let fileSystem: StoreFileSystem
    /// Bytes that a directory takes on disk: a block, or a cluster of blocks.
    private let directorySize: Int64
    /// The space that files take on disk, by the length of their contents, and the space that entries take, by the length
    /// of the record in their attribute.
    let contentSizes = LearnedAllocation()
    let recordSizes = LearnedAllocation()
    private let knownIdentities = Locked<[FileStatus.Identity?]?>(nil)

    /// Opens the cache at `path`, creating it and the directories above it if they are missing.
    ///
    /// - Throws: ``CacheError/Code/notACache`` for a directory that contains other files, ``CacheError/Code/newerFormat``,
    ///   and errors of the file system, also if records may be in extended attributes that this process can't read.
    package init(
        opening path: String,
        assuming assumed: Capabilities? = nil,
        form wanted: RecordForm = .attribute
    ) throws(CacheError) {
        self.path = path
        let setup = StoreSetup(path: path, assumed: assumed, form: wanted)
        let opened = try setup.openRoot()
        // Check this before any file is created in the directory.
        let status = try setup.checkTrust(in: opened)
        root = opened.owned(by: Ownership(of: status, user: CurrentProcess.effectiveUser))
        let form = try setup.prepare(root)
        try setup.checkTrust(inPartsOf: root, status)
        objects = try setup.openPart(StoreLayout.objects, of: root)
        entries = try setup.openPart(StoreLayout.entries, of: root)
        locks = try setup.openPart(StoreLayout.locks, of: root)
        fileSystem = try setup.examine(root, locks, form)
        // A directory does not shrink after it has contained many names, so its size is limited here.
        directorySize = max(fileSystem.blockSize, min(status.allocatedSize, Self.largestCluster))
    }

    /// The directory of the objects or of the entries.
    subscript(tree: Tree) -> Directory {
        _read {
            switch tree {
            case .objects: yield objects
            case .entries: yield entries
            }
        }
    }

    package var capabilities: Capabilities { fileSystem.capabilities }
    /// False if only reading works.
    package var isWritable: Bool { fileSystem.isWritable }

    /// Returns whether the path still leads to this directory, and its names to the parts that are open here.
    ///
    /// Four system calls; four more the first time.
    package func isCurrent() throws(CacheError) -> Bool {
        try describing("look at the cache directory", path) { () throws(Errno) in
            let own = try ownIdentities()
            var present = [try ifExists { () throws(Errno) in try FileStatus.of(path).identity }]
            // A missing directory may be on a medium that is gone, so its parts are not accessed.
            if present[0] != own[0] { return false }
            for name in [StoreLayout.objects, StoreLayout.entries, StoreLayout.locks] {
                present.append(try root.presentStatus(of: name)?.identity)
            }
            return present == own
        }
    }

    /// Returns the identities of the root and of the open parts.
    private func ownIdentities() throws(Errno) -> [FileStatus.Identity?] {
        if let known = knownIdentities.withLock({ $0 }) { return known }
        let identities: [FileStatus.Identity?] = [
            try root.descriptor.status().identity, try objects.descriptor.status().identity,
            try entries.descriptor.status().identity, try locks.descriptor.status().identity,
        ]
        knownIdentities.withLock { $0 = identities }
        return identities
    }
}

extension StoreDirectory {
    /// Returns the directory itself (".") and all its contents except entries and objects, down to shards, locks and
    /// temporary files, with names relative to the directory.
    ///
    /// Up to 700 system calls. Files that are deleted meanwhile, or can't be listed, are omitted.
    package func ownFiles() throws(Errno) -> [(name: String, status: FileStatus)] {
        var names = try root.names()
        for part in names where StoreLayout.partNames.contains(part) {
            do throws(Errno) {
                names += try root.openDirectory(RelativePath(part)).names().map { "\(part)/\($0)" }
            } catch {
                // The part's own status shows why.
                guard [.accessDenied, .noEntry, .notDirectory, .tooManyLinks].contains(error) else {
                    throw error
                }
            }
        }
        var files = [(name: ".", status: try root.descriptor.status())]
        for name in names where name.utf8.count <= RelativePath.capacity {
            if let status = try root.presentStatus(of: RelativePath(name)) { files.append((name, status)) }
        }
        return files
    }

    /// Acquires one of the locks; returns nil if it was not free within `patience`.
    func lock(_ name: RelativePath, patience: Duration) throws(CacheError) -> LockFile? {
        try describing("lock", "\(path)/\(StoreLayout.locks)/\(name)") { () throws(Errno) in
            try LockFile.acquire(name, in: locks, patience: patience)
        }
    }

    /// The default cluster size of ext4 with `bigalloc`, see mkfs.ext4(8): 16 blocks of 4 KiB.
    private static let largestCluster: Int64 = 64 << 10

    /// Bytes on disk of a mapped control file, of all shards, and of some small files.
    var usualOverhead: Int64 {
        (capabilities.sharedMapping == .file ? allocation(of: ControlLayout.byteCount) : 0)
            + Int64(2 * StoreLayout.shardCount) * directorySize + 32 * fileSystem.blockSize
    }

    /// Returns the estimated space of a file of `count` bytes on disk, without a system call.
    ///
    /// At most 4 EiB, which leaves room for sums: a sparse file can have any length that the system allows.
    func allocation(of count: Int) -> Int64 {
        let count = min(Int64(count), 1 << 62)
        let blockSize = fileSystem.blockSize
        return (count + blockSize - 1) / blockSize * blockSize
    }
}
