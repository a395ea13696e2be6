// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The users whose files may be in a directory, and the owner of new files.
///
/// The owner of a directory, and root, can put their files into it. Another user's file can only have been moved there,
/// from a directory that other users can write, so it is not used. If this process runs as root, it gives its new files
/// to the directory's owner, who otherwise could neither read nor replace their contents.
package struct Ownership: Sendable {
    let owner: UInt32
    let group: UInt32
    /// The user of this process.
    let user: UInt32
    /// Whether the members of the directory's group can write it, which means that they share it on purpose.
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

    /// Whether this process runs as root in another user's directory.
    var givesFilesAway: Bool { user == 0 && owner != 0 }

    /// Gives a file that this process has just created to the directory's owner.
    ///
    /// If root may not do that (in a user namespace without that user), the file remains root's.
    ///
    /// C: `fchown`, only for root in another user's directory.
    package func give(_ file: borrowing FileDescriptor) {
        guard givesFilesAway else { return }
        do throws(Errno) {
            try file.setOwner(owner, group: group)
        } catch {
            // `doctor` reports files of other owners.
        }
    }
}
