// SPDX-License-Identifier: Apache-2.0

import Platform

/// The files below `objects` or `entries`: each named by a digest, in the shard of its first two digits.
extension Directory {
    /// The state of a digest's file; nil where there is none.
    func fileStatus(of digest: Digest) throws(Errno) -> FileStatus? {
        try ifFiled { () throws(Errno) in try status(of: StoreLayout.path(of: digest)) }
    }

    /// False where there was none.
    func deleteFile(of digest: Digest) throws(Errno) -> Bool {
        try ifFiled { () throws(Errno) in try unlink(StoreLayout.path(of: digest)) } != nil
    }

    /// Puts the names of a digest's file and of its shard on the medium.
    func synchronizeNames(of digest: Digest) throws(Errno) {
        try openDirectory(StoreLayout.shard(of: digest)).descriptor.synchronizeAll()
        try descriptor.synchronizeAll()
    }

    /// Runs `body` with the shard of a digest, which is made if it is missing; a link in its place is not followed.
    ///
    /// linkat(2) and renameat(2) would follow one on the way to the new name. Two system calls besides.
    func withShard<Value: ~Copyable>(
        of digest: Digest,
        _ body: (borrowing Directory) throws(Errno) -> Value
    ) throws(Errno) -> Value {
        try making(StoreLayout.shard(of: digest)) { () throws(Errno) in
            try body(openDirectory(StoreLayout.shard(of: digest)))
        }
    }
}
