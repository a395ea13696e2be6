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
        try describing("look at an \(tree.rawValue)", path(of: digest, tree)) { () throws(Errno) in
            try ifFiled { () throws(Errno) in try self[tree].status(of: StoreLayout.path(of: digest)) }
        }
    }

    /// Deletes a digest's file; returns false if there was none.
    ///
    /// The caller holds the digest's stripe, exclusively for an object.
    func delete(_ digest: Digest, _ tree: Tree) throws(CacheError) -> Bool {
        try describing("delete an \(tree.rawValue)", path(of: digest, tree)) { () throws(Errno) in
            try ifFiled { () throws(Errno) in try self[tree].unlink(StoreLayout.path(of: digest)) } != nil
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
