// SPDX-License-Identifier: Apache-2.0

import Platform

/// Whether others may have put into a directory what it gives out.
///
/// Whoever can write a cache can forge values that no checksum finds out: those are there for accidents. So a directory
/// that everybody may write is refused, and so is another user's (root's aside) in a directory that everybody may write,
/// where he may have made it before its user came. One that its group may write was opened to it by somebody's hand,
/// and is taken for shared on purpose.
struct DirectoryTrust {
    /// Permission bits of the directory.
    let permissions: UInt32
    let owner: UInt32
    /// Permission bits of the directory that it is in; nil where it does not matter.
    var parentPermissions: UInt32?

    /// Why it is not to be used by `user`; nil: it is.
    func problem(for user: UInt32) -> String? {
        if permissions & Self.writableForAll != 0 {
            return "everybody may write it (0\(String(permissions, radix: 8))), and so forge what is read"
        }
        if !isOwn(of: user), let parentPermissions, parentPermissions & Self.writableForAll != 0 {
            return "it is user \(owner)'s, in a directory in which everybody can make one"
        }
        return nil
    }

    /// Whether it is this user's or root's.
    func isOwn(of user: UInt32) -> Bool { owner == user || owner == 0 }

    fileprivate static let writableForAll: UInt32 = 0o002
}

extension StoreSetup {
    /// Refuses a directory in which others may write.
    ///
    /// One system call; a second one where it is another user's.
    func checkTrust(in root: borrowing Directory) throws(StoreError) {
        let user = CurrentProcess.effectiveUser
        let problem = try describing("look at", path) { () throws(Errno) -> String? in
            let status = try root.descriptor.status()
            var trust = DirectoryTrust(permissions: status.permissions, owner: status.owner)
            if !trust.isOwn(of: user) { trust.parentPermissions = try root.status(of: "..").permissions }
            return trust.problem(for: user)
        }
        if let problem {
            throw StoreError(.untrusted, "open the cache directory", path: path, detail: problem)
        }
    }

    /// The same for the directories in it, of which one that is missing is made for its owner alone.
    ///
    /// One system call where others can't reach them, else five.
    func checkTrust(inPartsOf root: borrowing Directory) throws(StoreError) {
        let isReachable = try describing("look at", path) { () throws(Errno) in
            try root.descriptor.status().permissions & 0o001 != 0
        }
        if !isReachable { return }
        for part in [StoreLayout.objects, StoreLayout.entries, StoreLayout.locks, StoreLayout.temporaries] {
            let place = "\(path)/\(part)"
            let isOpen = try describing("look at", place) { () throws(Errno) in
                let status = try ifExists { () throws(Errno) in try root.status(of: part) }
                guard let status, status.kind == .directory else { return false }
                return status.permissions & DirectoryTrust.writableForAll != 0
            }
            let words = "everybody may write it, and so forge what is read"
            if isOpen { throw StoreError(.untrusted, "open a part of the cache", path: place, detail: words) }
        }
    }
}
