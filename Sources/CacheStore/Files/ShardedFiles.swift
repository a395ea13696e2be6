// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The files below `objects` or `entries`: each is named by a digest, and is in the shard of its first two digits.
extension StoreDirectory {
    /// Returns the path of a digest's file, for messages.
    func path(of digest: Digest, _ tree: Tree) -> String {
        "\(path)/\(tree.place)/\(StoreLayout.path(of: digest))"
    }

    /// Returns the status of a digest's file; nil if there is none.
    package func status(of digest: Digest, _ tree: Tree) throws(CacheError) -> FileStatus? {
        do throws(Errno) {
            return try self[tree].status(of: StoreLayout.path(of: digest))
        } catch {
            if error.showsNoFile { return nil }
            throw CacheError(errno: error, "look at an \(tree.rawValue)", path: path(of: digest, tree))
        }
    }

    /// Deletes a digest's file; returns false if there was none.
    ///
    /// The caller holds the digest's stripe, exclusively for an object.
    func delete(_ digest: Digest, _ tree: Tree) throws(CacheError) -> Bool {
        do throws(Errno) {
            try self[tree].unlink(StoreLayout.path(of: digest))
            return true
        } catch {
            if error.showsNoFile { return false }
            throw CacheError(errno: error, "delete an \(tree.rawValue)", path: path(of: digest, tree))
        }
    }
}

extension Directory {
    /// Writes the names of a digest's file and of its shard to the medium.
    func synchronizeNames(of digest: Digest) throws(Errno) {
        try openDirectory(StoreLayout.shard(of: digest)).descriptor.synchronizeAll()
        try descriptor.synchronizeAll()
    }
}
