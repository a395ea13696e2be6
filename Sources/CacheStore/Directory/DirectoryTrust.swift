// SPDX-License-Identifier: Apache-2.0

import Platform

/// Whether other users may have put values into a directory.
///
/// A user who can write to a cache can forge values that pass the checksums, which detect only accidents. So a directory
/// that all users may write is refused. Another user's directory (except root's) is also refused if that user may have
/// created it first: in a directory that all users may write, or in the other user's own directories inside such a
/// directory. The contents of a directory that belongs to this user or to root come from its owner. A directory that its
/// group may write was opened to the group by its owner, and counts as shared on purpose.
struct DirectoryTrust {
    let directory: FileStatus
    /// The directories above, the nearest first, up to the first one of this user or of root; empty if they don't matter.
    var above: [FileStatus] = []

    /// Returns why `user` must not use the directory; nil if it is safe.
    func problem(for user: UInt32) -> String? {
        if directory.isWritableForAll {
            let mode = String(directory.permissions, radix: 8)
            return "every user may write it (0\(mode)), and so forge values"
        }
        if !directory.isOwn(of: user), above.contains(where: \.isWritableForAll) {
            return "it is user \(directory.owner)'s, in a place where everybody can make a directory"
        }
        return nil
    }
}

extension FileStatus {
    /// Returns whether this user or root owns it.
    fileprivate func isOwn(of user: UInt32) -> Bool { owner == user || owner == 0 }

    fileprivate var isWritableForAll: Bool { permissions & 0o002 != 0 }
}

extension StoreSetup {
    /// Refuses a directory that untrusted users may write.
    ///
    /// One system call; for another user's directory one more for each directory above, up to one of this user or of root.
    ///
    /// - Returns: The status of the directory.
    func checkTrust(in root: borrowing Directory) throws(CacheError) -> FileStatus {
        let user = CurrentProcess.effectiveUser
        let trust = try describing("look at", path) { () throws(Errno) in
            var trust = DirectoryTrust(directory: try root.descriptor.status())
            if !trust.directory.isOwn(of: user) { trust.above = try above(root, of: user) }
            return trust
        }
        if let problem = trust.problem(for: user) {
            throw CacheError(.untrusted, to: "open the cache directory", path: path, detail: problem)
        }
        return trust.directory
    }

    /// Returns the directories above `root`, up to the first one of this user or of root, or to the top.
    private func above(_ root: borrowing Directory, of user: UInt32) throws(Errno) -> [FileStatus] {
        var places: [FileStatus] = []
        var path = ".."
        var below = try root.descriptor.status()
        while path.utf8.count <= RelativePath.capacity {
            let status = try root.status(of: RelativePath(path))
            if status.identity == below.identity { return places }
            places.append(status)
            if status.isOwn(of: user) { return places }
            below = status
            path += "/.."
        }
        // Thirty directories of other users are above: not a place for a cache.
        throw .nameTooLong
    }

    /// Refuses parts of the directory that all users may write; a missing part is created later, for its owner alone.
    ///
    /// No system call if other users can't reach them, otherwise four.
    func checkTrust(inPartsOf root: borrowing Directory, _ status: FileStatus) throws(CacheError) {
        if status.permissions & 0o001 == 0 { return }
        for part in [StoreLayout.objects, StoreLayout.entries, StoreLayout.locks, StoreLayout.temporaries] {
            let place = "\(path)/\(part)"
            let status = try describing("look at", place) { () throws(Errno) in
                try root.presentStatus(of: part)
            }
            guard let status, status.kind == .directory, status.isWritableForAll else { continue }
            let words = "every user may write it, and so forge values"
            throw CacheError(.untrusted, to: "open a part of the cache", path: place, detail: words)
        }
    }
}
