// SPDX-License-Identifier: Apache-2.0

import Platform

/// Whether others may have put into a directory what it gives out.
///
/// Whoever can write a cache can forge values that no checksum finds out: those are there for accidents. So a directory
/// that everybody may write is refused, and so is another user's (root's aside) that he may have made before its user
/// came: in a directory that everybody may write, or in others of his in one. What lies in a directory of this user's or
/// of root's was put there by their hand. One that its group may write was opened to it by somebody's hand, and is taken
/// for shared on purpose.
struct DirectoryTrust {
    let directory: FileStatus
    /// What it is in, the nearest first, to the first one that is this user's or root's; empty where it does not matter.
    var above: [FileStatus] = []

    /// Why it is not to be used by `user`; nil: it is.
    func problem(for user: UInt32) -> String? {
        if directory.isWritableForAll {
            let mode = String(directory.permissions, radix: 8)
            return "everybody may write it (0\(mode)), and so forge what is read"
        }
        if !directory.isOwn(of: user), above.contains(where: \.isWritableForAll) {
            return "it is user \(directory.owner)'s, in a place where everybody can make a directory"
        }
        return nil
    }
}

extension FileStatus {
    /// Whether it is this user's or root's.
    fileprivate func isOwn(of user: UInt32) -> Bool { owner == user || owner == 0 }

    fileprivate var isWritableForAll: Bool { permissions & 0o002 != 0 }
}

extension StoreSetup {
    /// Refuses a directory in which others may write.
    ///
    /// One system call; where it is another user's, one more for each directory up to one that is this user's or root's.
    ///
    /// - Returns: the status of the directory.
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

    /// What `root` is in, to the first one that is this user's or root's, or to the top.
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
        // Thirty of somebody else's: nobody keeps a cache there.
        throw .nameTooLong
    }

    /// The same for the directories in it, of which one that is missing is made for its owner alone.
    ///
    /// No system call where others can't reach them, else four.
    func checkTrust(inPartsOf root: borrowing Directory, _ status: FileStatus) throws(CacheError) {
        if status.permissions & 0o001 == 0 { return }
        for part in [StoreLayout.objects, StoreLayout.entries, StoreLayout.locks, StoreLayout.temporaries] {
            let place = "\(path)/\(part)"
            let status = try describing("look at", place) { () throws(Errno) in
                try root.presentStatus(of: part)
            }
            guard let status, status.kind == .directory, status.isWritableForAll else { continue }
            let words = "everybody may write it, and so forge what is read"
            throw CacheError(.untrusted, to: "open a part of the cache", path: place, detail: words)
        }
    }
}
