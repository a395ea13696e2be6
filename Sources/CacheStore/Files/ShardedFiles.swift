// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The files below `objects` or `entries`: each named by a digest, in the shard of its first two digits.
extension StoreDirectory {
    /// Where a digest's file is, for messages.
    func path(of digest: Digest, _ tree: Tree) -> String {
        "\(path)/\(tree.place)/\(StoreLayout.path(of: digest))"
    }

    /// The state of a digest's file; nil where there is none.
    package func status(of digest: Digest, _ tree: Tree) throws(CacheError) -> FileStatus? {
        try describing("look at an \(tree.rawValue)", path(of: digest, tree)) { () throws(Errno) in
            try ifFiled { () throws(Errno) in try self[tree].status(of: StoreLayout.path(of: digest)) }
        }
    }

    /// Deletes a digest's file; false where there was none.
    ///
    /// The caller holds its stripe, that of an object exclusively.
    func delete(_ digest: Digest, _ tree: Tree) throws(CacheError) -> Bool {
        try describing("delete an \(tree.rawValue)", path(of: digest, tree)) { () throws(Errno) in
            try ifFiled { () throws(Errno) in try self[tree].unlink(StoreLayout.path(of: digest)) } != nil
        }
    }
}

extension Directory {
    /// Puts the names of a digest's file and of its shard on the medium.
    func synchronizeNames(of digest: Digest) throws(Errno) {
        try openDirectory(StoreLayout.shard(of: digest)).descriptor.synchronizeAll()
        try descriptor.synchronizeAll()
    }
}
