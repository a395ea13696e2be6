// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// What stat(2) tells of a file.
package struct FileStatus: Sendable, Equatable {
    /// What kind of file it is.
    package enum Kind: Sendable, Equatable {
        case regular, directory, symbolicLink, other
    }

    /// Device and inode number: what makes two names one file.
    package struct Identity: Sendable, Equatable, Hashable {
        package let device: UInt64
        package let inode: UInt64
    }

    package let kind: Kind
    package let identity: Identity
    /// Length in bytes.
    package let size: Int64
    /// Space that the file system gave it, in bytes (st_blocks × 512).
    package let allocatedSize: Int64
    package let linkCount: UInt64
    package let permissions: UInt32
    package let owner: UInt32
    package let group: UInt32
    package let accessed: Timestamp
    package let changed: Timestamp
    package let modified: Timestamp

    init(_ status: stat) {
        switch status.st_mode & S_IFMT {
        case S_IFREG: kind = .regular
        case S_IFDIR: kind = .directory
        case S_IFLNK: kind = .symbolicLink
        default: kind = .other
        }
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
    /// What a path of the user's leads to, following symbolic links.
    ///
    /// C: `stat`.
    package static func of(_ path: String) throws(Errno) -> FileStatus {
        var status = stat()
        try nothingOrErrno { unsafe stat(path, &status) }
        return FileStatus(status)
    }

    /// What a path of the user's names, of the link itself where its last part is one.
    ///
    /// C: `lstat`.
    package static func ofLink(_ path: String) throws(Errno) -> FileStatus {
        var status = stat()
        try nothingOrErrno { unsafe lstat(path, &status) }
        return FileStatus(status)
    }
}

extension FileDescriptor {
    /// C: `fstat`.
    package func status() throws(Errno) -> FileStatus {
        var status = stat()
        try nothingOrErrno { unsafe fstat(rawValue, &status) }
        return FileStatus(status)
    }

    /// When the inode came to be, in nanoseconds since 1970; 0 where the file system does not tell.
    ///
    /// Nobody can set it, so it tells a file from a later one that has got its number.
    /// C: `statx`.
    package var birthTime: Int64 { cplatform_birth_time(rawValue) }

    /// Sets the time of last access and leaves that of modification alone.
    ///
    /// C: `futimens`.
    package func setAccessTime(_ time: Timestamp) throws(Errno) {
        try unsafe FileTimes.access(time).withTimes { (times) throws(Errno) in
            try nothingOrErrno { unsafe futimens(rawValue, times) }
        }
    }
}

extension FileDescriptor {
    /// Sets the file's times to the kernel's present and says what that is.
    ///
    /// C: `futimens`, `fstat`.
    package func touched() throws(Errno) -> Timestamp {
        try nothingOrErrno { futimens(rawValue, nil) }
        return try status().changed
    }
}

/// When a file system notes by itself that a file was read, mount(8).
package enum AccessTimes: Sendable, Equatable {
    /// Never: `noatime`.
    case never
    /// Once a day and after a change: `relatime`, as by default.
    case seldom
    /// Each time: `strictatime`.
    case always
}

/// Space and inodes of a file system, statvfs(3).
package struct FileSystemSpace: Sendable, Equatable {
    /// Bytes in all, and bytes that an unprivileged user can still have.
    package let totalBytes: Int64
    package let availableBytes: Int64
    /// Bytes that are in use by nobody, those included that are reserved for root: where ``availableBytes`` is 0 there
    /// may be less of them than are reserved, and what becomes free is available to nobody else at first.
    package let freeBytes: Int64
    /// Inodes in all, and free ones; both 0 where the file system does not count them.
    package let totalInodes: UInt64
    package let availableInodes: UInt64
    package let isReadOnly: Bool
    package let accessTimes: AccessTimes

    package init(
        totalBytes: Int64,
        availableBytes: Int64,
        freeBytes: Int64? = nil,
        totalInodes: UInt64,
        availableInodes: UInt64,
        isReadOnly: Bool,
        accessTimes: AccessTimes = .seldom
    ) {
        self.totalBytes = totalBytes
        self.availableBytes = availableBytes
        self.freeBytes = freeBytes ?? availableBytes
        self.totalInodes = totalInodes
        self.availableInodes = availableInodes
        self.isReadOnly = isReadOnly
        self.accessTimes = accessTimes
    }
}

extension FileDescriptor {
    /// C: `fstatvfs`.
    package func fileSystemSpace() throws(Errno) -> FileSystemSpace {
        var space = statvfs()
        try nothingOrErrno { unsafe fstatvfs(rawValue, &space) }
        return FileSystemSpace(
            totalBytes: Int64(clamping: UInt64(space.f_blocks).multipliedSaturating(UInt64(space.f_frsize))),
            availableBytes: Int64(
                clamping: UInt64(space.f_bavail).multipliedSaturating(UInt64(space.f_frsize))
            ),
            freeBytes: Int64(clamping: UInt64(space.f_bfree).multipliedSaturating(UInt64(space.f_frsize))),
            totalInodes: UInt64(space.f_files),
            availableInodes: UInt64(space.f_favail),
            isReadOnly: space.f_flag & UInt(ST_RDONLY) != 0,
            accessTimes: space.f_flag & cplatform_ST_NOATIME != 0
                ? .never : space.f_flag & cplatform_ST_RELATIME != 0 ? .seldom : .always
        )
    }
}

extension UInt64 {
    fileprivate func multipliedSaturating(_ other: UInt64) -> UInt64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}
