// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Whose files may be in a directory, and whom new ones belong to.
///
/// The owner of a directory, and root, can put any file of theirs into it. Another user's file can only have been moved
/// there, from a place where others write: it is not used. Root's new files become the owner's, who could neither
/// read nor replace their contents otherwise.
package struct Ownership: Sendable {
    let owner: UInt32
    let group: UInt32
    /// Who looks at it.
    let user: UInt32
    /// Whether the members of its group may write it: then they share it on purpose.
    let isShared: Bool

    package init(of directory: FileStatus, user: UInt32) {
        owner = directory.owner
        group = directory.group
        self.user = user
        isShared = directory.permissions & 0o020 != 0
    }

    /// Whether a file may be used.
    func accepts(_ file: FileStatus) -> Bool {
        isShared || file.owner == owner || file.owner == user || file.owner == 0
    }

    /// Whether this process is root's in another user's directory.
    var givesFilesAway: Bool { user == 0 && owner != 0 }

    /// Makes a file that this process has just made the owner's.
    ///
    /// Where root may not (a user namespace without that user), the file stays root's.
    ///
    /// C: `fchown`, only for root in another user's directory.
    package func give(_ file: borrowing FileDescriptor) {
        guard givesFilesAway else { return }
        do throws(Errno) {
            try file.setOwner(owner, group: group)
        } catch {
            // `doctor` names files of another owner.
        }
    }
}
