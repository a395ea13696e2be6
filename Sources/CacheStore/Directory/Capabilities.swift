// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a directory's file system can do, found by trying once when it is opened.
package struct Capabilities: Sendable, Equatable {
    /// Extended attributes of the user's.
    package enum Attributes: Sendable, Equatable {
        /// They can be set and read.
        case writable
        /// They may not be set here (a sandbox, a file system mounted for reading), but may well be there.
        case readable
        /// The file system knows none.
        case absent
    }

    package var attributes: Attributes
    /// Whether there are files without a name (O_TMPFILE) that can be given one later.
    package var unnamedFiles: Bool
    /// How the processes that use the directory share memory.
    package var sharedMapping = SharedMapping.file
}

/// How the processes of a cache share memory, by what its file system allows.
package enum SharedMapping: Sendable, Equatable {
    /// `control` itself is mapped.
    case file
    /// `control` names a file in memory, and that is mapped: where a store into a mapped file may need a new block, a
    /// full disk would end the process with SIGBUS.
    case memory
    /// Not at all: other machines may be using the directory.
    case none

    init(on fileSystem: FileSystemKind, isAssumedLocal: Bool = false) {
        let isRemote = fileSystem.isRemote && !isAssumedLocal
        self = isRemote ? .none : fileSystem.storesNeedNoRoom ? .file : .memory
    }
}

/// In which of its two forms a record is written.
///
/// Both are always understood.
package enum RecordForm: Sendable, Equatable {
    /// The extended attribute `user.dc` of an otherwise empty file.
    case attribute
    /// The contents of the file.
    case sidecar
}

/// Permission bits of what the cache makes: the owner's only (the umask can take away, never add).
enum FileMode {
    static let directory: UInt32 = 0o700
    static let file: UInt32 = 0o600
    /// Objects never change, so nobody may write them, not even their owner by mistake.
    static let object: UInt32 = 0o400
}
