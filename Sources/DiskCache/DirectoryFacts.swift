// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import Platform

/// The facts about a cache directory from which ``findings`` draws its conclusions.
package struct DirectoryFacts: Sendable, Equatable {
    /// Whether this process can write it.
    package var isWritable: Bool
    /// Whether files can have extended attributes of the user's.
    package var hasAttributes: Bool
    /// Whether there are files without a name (O_TMPFILE) that can be given one later.
    package var hasUnnamedFiles: Bool
    /// Whether files can be locked (flock); nil where there was none to try it on.
    package var hasLocks: Bool?
    /// What this process has of the control file.
    package var control: ControlCondition
    /// Whether the path still leads to the directory that was opened.
    package var isCurrent: Bool
    package var fileSystem: FileSystemKind
    package var space: FileSystemSpace
    package var owner: UInt32
    /// The user that this process acts as.
    package var user: UInt32
    /// The permission bits of the directory and of its parts, united.
    package var permissions: UInt32
    /// How far the file system's time stamps are ahead of the clock; nil where none could be made.
    package var clockSkew: Duration?

    package init(
        isWritable: Bool,
        hasAttributes: Bool,
        hasUnnamedFiles: Bool,
        hasLocks: Bool?,
        control: ControlCondition,
        isCurrent: Bool,
        fileSystem: FileSystemKind,
        space: FileSystemSpace,
        owner: UInt32,
        user: UInt32,
        permissions: UInt32,
        clockSkew: Duration?
    ) {
        self.isWritable = isWritable
        self.hasAttributes = hasAttributes
        self.hasUnnamedFiles = hasUnnamedFiles
        self.hasLocks = hasLocks
        self.control = control
        self.isCurrent = isCurrent
        self.fileSystem = fileSystem
        self.space = space
        self.owner = owner
        self.user = user
        self.permissions = permissions
        self.clockSkew = clockSkew
    }
}

extension SharedCache {
    /// What `diskcache doctor` reports on.
    ///
    /// About a dozen system calls; the contents are not looked at.
    ///
    /// Dates one file of the cache anew (`locks/format`), to read the file system's clock.
    package func facts() throws(CacheError) -> DirectoryFacts {
        try withStore { (store, _) throws(StoreError) in
            let directory = store.directory
            let isCurrent = try directory.isCurrent()
            do throws(Errno) {
                let status = try directory.root.descriptor.status()
                var permissions = status.permissions
                for part in [StoreLayout.objects, StoreLayout.entries, StoreLayout.locks] {
                    permissions |= try directory.root.status(of: part).permissions
                }
                return DirectoryFacts(
                    isWritable: directory.isWritable,
                    hasAttributes: directory.capabilities.attributes == .writable,
                    hasUnnamedFiles: directory.capabilities.unnamedFiles,
                    hasLocks: Self.hasLocks(directory.root),
                    control: store.controlCondition,
                    isCurrent: isCurrent,
                    fileSystem: try directory.root.descriptor.fileSystemKind(),
                    space: try directory.root.descriptor.fileSystemSpace(),
                    owner: status.owner,
                    user: CurrentProcess.effectiveUser,
                    permissions: permissions,
                    clockSkew: directory.isWritable ? Self.clockSkew(directory.root) : nil
                )
            } catch {
                throw StoreError(.inputOutput, "examine", path: directory.path, errno: error)
            }
        }
    }

    /// Made with the cache, and there as long as it is.
    private static let probe: RelativePath = "locks/format"

    /// Whether flock works, nil where the file can't be opened: then other findings say why.
    private static func hasLocks(_ root: borrowing Directory) -> Bool? {
        let file: FileDescriptor
        do throws(Errno) {
            file = try root.open(probe, .readOnly)
        } catch {
            return nil
        }
        do throws(Errno) {
            // Held by another it works as well. Closing the file gives it back.
            _ = try file.tryLock(.shared)
            return true
        } catch {
            return false
        }
    }

    /// The file system's present less the clock's, nil where the file can't be dated: then other findings
    /// say why.
    private static func clockSkew(_ root: borrowing Directory) -> Duration? {
        do throws(Errno) {
            try root.touch(probe)
            return try root.status(of: probe).changed - .now
        } catch {
            return nil
        }
    }
}
