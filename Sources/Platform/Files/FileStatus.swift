// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// What stat(2) reports about a file.
package struct FileStatus: Sendable, Equatable {
    /// The kind of a file.
    package enum Kind: Sendable, Equatable {
        case regular, directory, symbolicLink, other

        /// Creates the kind from the bits of st_mode, inode(7).
        init(mode: mode_t) {
            switch mode & S_IFMT {
            case S_IFREG: self = .regular
            case S_IFDIR: self = .directory
            case S_IFLNK: self = .symbolicLink
            default: self = .other
            }
        }
    }

    /// The device and inode number: two names with the same identity are one file.
    package struct Identity: Sendable, Equatable, Hashable {
        package let device: UInt64
        package let inode: UInt64
    }

    package let kind: Kind
    package let identity: Identity
    /// The length in bytes.
    package let size: Int64
    /// The space that the file system has allocated to the file, in bytes (st_blocks × 512).
    package let allocatedSize: Int64
    package let linkCount: UInt64
    package let permissions: UInt32
    package let owner: UInt32
    package let group: UInt32
    package let accessed: Timestamp
    package let changed: Timestamp
    package let modified: Timestamp

    init(_ status: stat) {
        kind = Kind(mode: status.st_mode)
        identity = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        size = Int64(status.st_size)
        allocatedSize = Int64(status.st_blocks) * 512
        linkCount = UInt64(status.st_nlink)
        permissions = status.st_mode & 0o7777
        owner = status.st_uid
        group = status.st_gid
        accessed = Timestamp(status.st_atim)
        changed = Timestamp(status.st_ctim)
        modified = Timestamp(status.st_mtim)
    }
}

extension FileStatus {
    /// Creates a status from the buffer that a call of the stat(2) family fills.
    @inline(__always)
    init(_ call: (inout stat) -> CInt) throws(Errno) {
        var status = stat()
        try systemCall(.status) { call(&status) }
        self.init(status)
    }

    /// Returns the status of the file at a path from the user, following symbolic links.
    ///
    /// C: `stat`.
    package static func of(_ path: String) throws(Errno) -> FileStatus {
        try unsafe path.withPath { (path) throws(Errno) in try FileStatus { unsafe stat(path, &$0) } }
    }

    /// Returns the status of the file at a path from the user, without following a symbolic link at its end.
    ///
    /// C: `lstat`.
    package static func ofLink(_ path: String) throws(Errno) -> FileStatus {
        try unsafe path.withPath { (path) throws(Errno) in try FileStatus { unsafe lstat(path, &$0) } }
    }
}

extension FileDescriptor {
    /// C: `fstat`.
    package func status() throws(Errno) -> FileStatus {
        try FileStatus { unsafe fstat(rawValue, &$0) }
    }

    /// The creation time of the inode, in nanoseconds since 1970; 0 if the file system does not report it.
    ///
    /// No process can set it, so it distinguishes a file from a later one with the same inode number.
    ///
    /// C: `statx`.
    package var birthTime: Int64 { SystemCall.status.isRefused ? 0 : cplatform_birth_time(rawValue) }

    /// Sets the time of last access and leaves the modification time unchanged.
    ///
    /// C: `futimens`.
    package func setAccessTime(_ time: Timestamp) throws(Errno) {
        try unsafe time.withAccessTimes { (times) throws(Errno) in
            try systemCall(.setTimes) { unsafe futimens(rawValue, times) }
        }
    }

    /// Sets the file's times to the kernel's current time and returns that time.
    ///
    /// C: `futimens`, `fstat`.
    package func touched() throws(Errno) -> Timestamp {
        try systemCall(.setTimes) { futimens(rawValue, nil) }
        return try status().changed
    }
}
