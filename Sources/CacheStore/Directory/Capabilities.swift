// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a directory's file system can do, found by trying once when it is opened.
package struct Capabilities: Sendable, Equatable {
    /// Extended attributes of the user's.
    package enum Attributes: Sendable, Equatable {
        /// They can be set and read.
        case writable
        /// They can be read, but not set: a sandbox, a file system mounted for reading.
        case readable
        /// They can't be used, or no process uses them, as the directory was made with sidecars.
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
/// A directory is made with attributes wherever its maker can read them; then both forms are understood, and a process that
/// can't read attributes does not open it: it would take what others have stored for nothing. A directory that was made
/// where they can't be read has sidecars alone, whoever writes them: an attribute would be news that its maker misses.
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
