// SPDX-License-Identifier: Apache-2.0

import Platform

/// The capabilities of a directory's file system, probed once when the directory is opened.
package struct Capabilities: Sendable, Equatable {
    /// The support for extended attributes of the user namespace.
    package enum Attributes: Sendable, Equatable {
        /// Attributes can be set and read.
        case writable
        /// Attributes can be read, but not set: a sandbox, or a read-only file system.
        case readable
        /// Attributes can't be used, or no process uses them because the directory was created with sidecars.
        case absent
    }

    package var attributes: Attributes
    /// Whether there are unnamed files (O_TMPFILE) that can get a name later.
    package var unnamedFiles: Bool
    /// How the processes that use the directory share memory.
    package var sharedMapping = SharedMapping.file
}

/// How the processes of a cache share memory, depending on its file system.
package enum SharedMapping: Sendable, Equatable {
    /// `control` itself is mapped.
    case file
    /// `control` names a file in memory, and that file is mapped.
    ///
    /// For file systems on which a store into a mapped file may need a new block: then a full disk would kill the process
    /// with SIGBUS.
    case memory
    /// No memory is shared: other machines may be using the directory, or its configuration forbids it.
    case none

    init(on fileSystem: FileSystemKind, isAssumedLocal: Bool = false) {
        let isRemote = fileSystem.isRemote && !isAssumedLocal
        self = isRemote ? .none : fileSystem.storesNeedNoRoom ? .file : .memory
    }
}

/// The form in which a record is written.
///
/// A directory is created with attributes if its creator can read them. Then processes read both forms, and a process that
/// can't read attributes does not open the directory: it would miss the values that other processes have stored. A
/// directory whose creator can't read attributes contains only sidecars, whichever process writes them: the creator could
/// not see an attribute.
package enum RecordForm: Sendable, Equatable {
    /// The extended attribute `user.dc` of an otherwise empty file.
    case attribute
    /// The contents of the file.
    case sidecar
}

/// Permission bits of the cache's files and directories: for the owner only (the umask can remove bits, never add any).
enum FileMode {
    static let directory: UInt32 = 0o700
    static let file: UInt32 = 0o600
    /// Objects never change, so no process may write them, not even the owner by mistake.
    static let object: UInt32 = 0o400
}
