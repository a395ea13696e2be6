// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// What kind of file system something is on, by its magic number, statfs(2).
package struct FileSystemKind: Sendable, Equatable {
    /// The number as the kernel gave it.
    package let magic: Int64

    /// The numbers of linux/magic.h and of the file systems' own sources, as far as caches meet them.
    private static let known: [Int64: (name: String, isRemote: Bool)] = [
        0x6969: ("NFS", true),
        0x517B: ("SMB", true),
        0xFF53_4D42: ("CIFS", true),
        0xFE53_4D42: ("SMB2", true),
        0x0102_1997: ("9p", true),
        0x00C3_6400: ("Ceph", true),
        0x5346_414F: ("AFS", true),
        0x6B41_4653: ("kAFS", true),
        0x7461_636F: ("OCFS2", true),
        0x0116_1970: ("GFS2", true),
        0x0BD0_0BD0: ("Lustre", true),
        0x4750_4653: ("GPFS", true),
        // Behind FUSE may be anything; what it promises is up to a program.
        0x6573_5546: ("FUSE", true),
        0xEF53: ("ext4", false),
        0x5846_5342: ("XFS", false),
        0x9123_683E: ("Btrfs", false),
        0x0102_1994: ("tmpfs", false),
        0x8584_58F6: ("ramfs", false),
        0x794C_7630: ("overlayfs", false),
        0x2FC1_2FC1: ("ZFS", false),
        0xF2F5_2010: ("F2FS", false),
        0xCA45_1A4E: ("bcachefs", false),
        0x4D44: ("FAT", false),
        0x2011_BAB0: ("exFAT", false),
        0x3153_464A: ("JFS", false),
        0x3434: ("NILFS2", false),
        0x7366_746E: ("NTFS", false),
        0x482B: ("HFS+", false),
        0x1501_3346: ("UDF", false),
        0x9660: ("ISO 9660", false),
        0x7371_7368: ("SquashFS", false),
        0xE0F5_E1E2: ("EROFS", false),
    ]

    /// "ext4", or the number of one that is not known here.
    package var name: String {
        Self.known[magic]?.name ?? "type 0x\(String(magic, radix: 16))"
    }

    /// Whether other machines may be using it too, or a program stands in for the kernel; also where nothing is known
    /// of it: to take a remote one for local would give out old values.
    package var isRemote: Bool {
        Self.known[magic]?.isRemote ?? true
    }

    /// Whether it is one of those that are told apart here.
    package var isKnown: Bool { Self.known[magic] != nil }

    /// Whether a store into a mapped page never needs room, once the page has its block.
    ///
    /// Not where blocks are never overwritten (Btrfs, bcachefs, ZFS, F2FS), nor where they may be shared with a copy of the
    /// file (XFS). What is below overlayfs can't be told.
    package var storesNeedNoRoom: Bool {
        ["ext4", "tmpfs", "ramfs", "FAT", "exFAT"].contains(name)
    }

    /// Whether what a file of a few blocks takes depends on nothing but how many they are, and on how the file system
    /// was made: not where data are compressed, or room is kept for more, or holes are copied from another file.
    package var givesSmallFilesTheirBlocks: Bool { name == "ext4" }

    /// Whether the status of a file may show more blocks for a moment than the file keeps.
    ///
    /// XFS gives an open file that is written in several pieces more than it needs, until it is closed. Btrfs counts a file
    /// twice while it writes the file out (seen in 438 of 120,000 looks beside sync(2)).
    package var overstatesAllocations: Bool { name == "XFS" || name == "Btrfs" }

    /// Whether a file's change time tells of changed extended attributes too, on every kernel.
    ///
    /// On tmpfs it does only since Linux 6.2.
    package var datesAttributes: Bool { name == "ext4" }

    /// Whether it lives in memory, and ends with the machine's uptime.
    package var isVolatile: Bool {
        name == "tmpfs" || name == "ramfs"
    }
}

extension FileDescriptor {
    /// The kind of file system that the file is on, and the bytes in which it gives out space.
    ///
    /// C: `fstatfs`.
    package func fileSystem() throws(Errno) -> (kind: FileSystemKind, blockSize: Int64) {
        var blockSize: Int64 = 0
        let magic = try systemCall(.fileSystemStatus) {
            unsafe cplatform_filesystem_magic(rawValue, &blockSize)
        }
        return (FileSystemKind(magic: magic), max(blockSize, 512))
    }

    /// Whether it is a pipe that has no name in any directory, pipe(7).
    ///
    /// C: `fstatfs`.
    package func isUnnamedPipe() throws(Errno) -> Bool {
        // PIPEFS_MAGIC of linux/magic.h.
        try fileSystem().kind.magic == 0x5049_5045
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
}

extension FileSystemSpace {
    /// Of the file system that `path` is on, or what is above it where there is no such directory; nil where none can be
    /// looked at.
    package init?(nearest path: String) {
        var parts = path.split(separator: "/")
        let root = path.hasPrefix("/") ? "/" : "./"
        while true {
            let place = root + parts.joined(separator: "/")
            if let space = try? Directory(opening: place).descriptor.fileSystemSpace() {
                self = space
                return
            }
            if parts.popLast() == nil { return nil }
        }
    }
}

extension FileDescriptor {
    /// C: `fstatvfs`.
    package func fileSystemSpace() throws(Errno) -> FileSystemSpace {
        var space = statvfs()
        try systemCall(.fileSystemStatus) { unsafe fstatvfs(rawValue, &space) }
        let bytes = { (blocks: UInt) in
            let (product, overflow) = blocks.multipliedReportingOverflow(by: space.f_frsize)
            return overflow ? Int64.max : Int64(clamping: product)
        }
        return FileSystemSpace(
            totalBytes: bytes(space.f_blocks),
            availableBytes: bytes(space.f_bavail),
            freeBytes: bytes(space.f_bfree),
            totalInodes: UInt64(space.f_files),
            availableInodes: UInt64(space.f_favail),
            isReadOnly: space.f_flag & UInt(ST_RDONLY) != 0,
            accessTimes: space.f_flag & cplatform_ST_NOATIME != 0
                ? .never : space.f_flag & cplatform_ST_RELATIME != 0 ? .seldom : .always
        )
    }
}

/// The file system in memory whose files processes map to share them: shm_overview(7).
package enum SharedMemory {
    package static let path = "/dev/shm"

    /// Opens its directory.
    ///
    /// - Throws: ``Errno/noDevice`` where it is on a file system that is not in memory: a store into a mapped file might
    ///   need room there.
    package static func open() throws(Errno) -> Directory {
        let directory = try Directory(opening: path)
        guard try directory.descriptor.fileSystem().kind.isVolatile else { throw .noDevice }
        return directory
    }
}
