// SPDX-License-Identifier: Apache-2.0

package import Platform

/// Walks the shards of `entries` and `objects`, one at a time, while other processes continue to write.
///
/// A file that is deleted between the listing and the check is omitted. The memory needed is that for the names of one
/// shard.
extension Store {
    /// The contents of a shard: the cache's files, and unrecognized files, which are reported and never touched.
    package struct Listing: Sendable {
        var files: [File] = []
        /// The names of copies that a process is writing in the shard, or that a killed process has left there.
        var temporaries: [String] = []
        /// Paths of files that do not belong to the cache, relative to the cache directory.
        package var unrecognised: [String] = []

        package var digests: [Digest] { files.map(\.digest) }
    }

    /// A file of the cache, as its directory entry describes it.
    struct File: Sendable {
        let digest: Digest
        /// The lower half of its inode number.
        let inode: UInt32
        /// Whether it is a regular file; also false if the directory entry has no type.
        let isRegular: Bool
    }

    func stripes(_ tree: Tree) -> Stripes { tree == .entries ? entries.stripes : objects.stripes }

    // MARK: Shards

    /// Returns the existing shards in the order of their directories' inodes, because a cold disk reads neighboring
    /// inodes together.
    ///
    /// If the tree can't be listed, it returns all 256 shards; opening them produces the error. Five system calls.
    func shards(_ tree: Tree) -> [Int] {
        var found: [(shard: Int, inode: UInt64)] = []
        do throws(Errno) {
            try directory[tree].openDirectory(".").forEachFile { (name, file) in
                if let shard = Self.shard(named: name) { found.append((shard, file.inode)) }
            }
        } catch {
            return Array(0..<StoreLayout.shardCount)
        }
        return found.sorted { $0.inode < $1.inode }.map(\.shard)
    }

    private static func shard(named name: Span<UInt8>) -> Int? {
        guard name.count == 2 else { return nil }
        let (high, low) = (Digest.value(ofDigit: name[0]), Digest.value(ofDigit: name[1]))
        return high | low < 16 ? Int(high) << 4 | Int(low) : nil
    }

    /// Lists one of 256 shards.
    ///
    /// Four system calls, and one more for about 370 names; one if the shard does not exist.
    package func digests(_ tree: Tree, shard: Int) throws(CacheError) -> Listing {
        var listing = Listing()
        _ = try list(tree, shard: shard, into: &listing)
        return listing
    }

    /// Opens one of 256 shards and adds its contents to `listing`; returns nil if the shard is missing or is not a
    /// directory.
    func list(_ tree: Tree, shard: Int, into listing: inout Listing) throws(CacheError) -> Directory? {
        let place = tree.place(ofShard: shard)
        do throws(Errno) {
            let found = try ifExists { () throws(Errno) in
                try directory[tree].openDirectory(StoreLayout.shards[shard])
            }
            guard let found else { return nil }
            try found.forEachFile { (name, file) in
                if let digest = Digest(hexadecimal: name), digest.shard == shard,
                    file.kind == .regular || file.kind == nil
                {
                    let inode = UInt32(truncatingIfNeeded: file.inode)
                    let isRegular = file.kind == .regular
                    listing.files.append(File(digest: digest, inode: inode, isRegular: isRegular))
                } else {
                    let name = String(decoding: name)
                    if name.hasPrefix("put-"), StoreLayout.path(ofTemporary: name) != nil {
                        listing.temporaries.append(name)
                    } else {
                        listing.unrecognised.append("\(place)/\(name)")
                    }
                }
            }
            return found
        } catch {
            // The cache has not created such a file, so it contains none of the cache's files.
            if error == .notDirectory || error == .tooManyLinks {
                listing.unrecognised.append(place)
                return nil
            }
            throw CacheError(errno: error, "list", path: "\(directory.path)/\(place)")
        }
    }

    /// Opens a shard that was listed before; returns nil if it is missing or no longer a directory.
    func open(_ tree: Tree, shard: Int) throws(CacheError) -> Directory? {
        try describing("open", "\(directory.path)/\(tree.place(ofShard: shard))") { () throws(Errno) in
            try ifFiled { () throws(Errno) in try directory[tree].openDirectory(StoreLayout.shards[shard]) }
        }
    }

    // MARK: Files

    /// Returns an entry with the status of its file; nil if it is missing or not a regular file.
    package func entry(_ key: Digest) throws(CacheError) -> (stored: StoredEntry, status: FileStatus)? {
        // Read the status first. It is compared later, and then shows any access or write after this point.
        guard let status = try directory.status(of: key, .entries), status.kind == .regular,
            let stored = try entries.read(key)
        else { return nil }
        return (stored, status)
    }

    /// Returns the bytes of an entry's record with the status of its file; nil if it is missing or not a regular file.
    ///
    /// It reads from the open shard, by names of one component, so the kernel walks no path. Two system calls for a
    /// record in an attribute.
    func entry(
        _ key: Digest,
        in shard: borrowing Directory
    ) throws(CacheError) -> (bytes: [UInt8], status: FileStatus)? {
        // Read the status first, as above.
        guard let status = try status(of: key, .entries, in: shard), status.kind == .regular,
            let bytes = try recordBytes(of: key, in: shard)
        else { return nil }
        return (bytes, status)
    }

    /// Returns the bytes of an entry's record, even if a rule has removed the entry; nil if the entry is missing.
    ///
    /// One system call for a record in an attribute.
    func recordBytes(of key: Digest, in shard: borrowing Directory) throws(CacheError) -> [UInt8]? {
        if directory.capabilities.attributes != .absent {
            // If this fails, the function below determines why.
            let found = bestEffort { () throws(Errno) in
                try shard.attribute(StoreLayout.recordAttribute, of: StoreLayout.fileName(of: key))
            }
            if let found, let bytes = found { return bytes }
        }
        return try entries.recordBytes(key)
    }

    /// Returns the status of a file in an open shard; nil if it is missing.
    ///
    /// One system call.
    func status(
        of digest: Digest,
        _ tree: Tree,
        in shard: borrowing Directory
    ) throws(CacheError) -> FileStatus? {
        try describing("look at", directory.path(of: digest, tree)) { () throws(Errno) in
            try shard.presentStatus(of: StoreLayout.fileName(of: digest))
        }
    }

    /// Deletes a file in an open shard; returns false if it was missing.
    ///
    /// The caller holds its stripe exclusively.
    func delete(_ digest: Digest, _ tree: Tree, in shard: borrowing Directory) throws(CacheError) -> Bool {
        try describing("delete", directory.path(of: digest, tree)) { () throws(Errno) in
            try ifExists { () throws(Errno) in try shard.unlink(StoreLayout.fileName(of: digest)) } != nil
        }
    }

    /// Returns the status of an object's file; nil if it is missing.
    package func object(_ digest: Digest) throws(CacheError) -> FileStatus? {
        let status = try directory.status(of: digest, .objects)
        return status?.kind == .regular ? status : nil
    }
}
