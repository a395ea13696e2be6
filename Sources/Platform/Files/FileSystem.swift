// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// The kind of a file system, by its magic number, statfs(2).
package struct FileSystemKind: Sendable, Equatable {
    /// The number as returned by the kernel.
    package let magic: Int64

    /// The numbers from linux/magic.h and from the sources of file systems that caches are likely to be on.
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
        // Any file system may be behind FUSE: a user-space program determines its guarantees.
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

    /// The name, such as "ext4", or the number of an unknown file system.
    package var name: String {
        Self.known[magic]?.name ?? "type 0x\(String(magic, radix: 16))"
    }

    /// Whether other machines may use the file system too, or a user-space program implements it.
    ///
    /// Also true for an unknown file system, because treating a remote file system as local would return stale values.
    package var isRemote: Bool {
        Self.known[magic]?.isRemote ?? true
    }

    /// Whether the file system is one of the known ones.
    package var isKnown: Bool { Self.known[magic] != nil }

    /// Whether a store into a mapped page never needs space once the page has its block.
    ///
    /// False if the file system never overwrites blocks in place (Btrfs, bcachefs, ZFS, F2FS), or may share blocks with a
    /// copy of the file (XFS). Also false for overlayfs, because the file system below it is unknown.
    package var storesNeedNoRoom: Bool {
        ["ext4", "tmpfs", "ramfs", "FAT", "exFAT"].contains(name)
    }

    /// Whether the space of a small file depends only on its number of blocks and on how the file system was created.
    ///
    /// False if data are compressed, space is reserved ahead, or holes are copied from another file.
    package var givesSmallFilesTheirBlocks: Bool { name == "ext4" }

    /// Whether a file's status may temporarily show more blocks than the file keeps.
    ///
    /// XFS allocates more than needed to an open file that is written in several pieces, until it is closed. Btrfs counts a
    /// file twice while it writes the file out (seen in 438 of 120,000 checks concurrent with sync(2)).
    package var overstatesAllocations: Bool { name == "XFS" || name == "Btrfs" }

    /// Whether a file's change time reflects changed extended attributes, on every kernel.
    ///
    /// On tmpfs it does so only since Linux 6.2.
    package var datesAttributes: Bool { name == "ext4" }

    /// Whether the file system is in memory, so that a reboot loses its files.
    package var isVolatile: Bool {
        name == "tmpfs" || name == "ramfs"
    }
}

extension FileDescriptor {
    /// Returns the kind of the file's file system and its allocation unit in bytes.
    ///
    /// C: `fstatfs`.
    package func fileSystem() throws(Errno) -> (kind: FileSystemKind, blockSize: Int64) {
        var blockSize: Int64 = 0
        let magic = try systemCall(.fileSystemStatus) {
            unsafe cplatform_filesystem_magic(rawValue, &blockSize)
        }
        return (FileSystemKind(magic: magic), max(blockSize, 512))
    }

    /// Whether the file is an unnamed pipe, pipe(7).
    ///
    /// C: `fstatfs`.
    package func isUnnamedPipe() throws(Errno) -> Bool {
        // PIPEFS_MAGIC of linux/magic.h.
        try fileSystem().kind.magic == 0x5049_5045
    }
}

/// When a file system updates the access time of a file that is read, mount(8).
package enum AccessTimes: Sendable, Equatable {
    /// Never recorded: `noatime`.
    case never
    /// Recorded once a day and after a change: `relatime`, the default.
    case seldom
    /// Recorded at each read: `strictatime`.
    case always
}

/// The space and inodes of a file system, statvfs(3).
package struct FileSystemSpace: Sendable, Equatable {
    /// The largest number of bytes that is reported: 2 EiB.
    package static let most: Int64 = 1 << 61

    /// The total bytes.
    package let totalBytes: Int64
    package let availableBytes: Int64
    /// The unused bytes, including those reserved for root.
    ///
    /// If ``availableBytes`` is 0, the reserve itself may be partly used; freed space then replenishes the reserve first.
    package let freeBytes: Int64
    /// The total inodes; 0, like ``availableInodes``, if the file system does not count inodes.
    package let totalInodes: UInt64
    package let availableInodes: UInt64
    package let isReadOnly: Bool
    package let accessTimes: AccessTimes
}

extension FileSystemSpace {
    /// Creates the space of the file system of `path`, or of its nearest parent directory that can be opened; nil if none
    /// can.
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
        // Network file systems without a limit report up to 8 EiB. Sums with a cache's size must not overflow.
        let bytes = { (blocks: UInt) in
            let (product, overflow) = blocks.multipliedReportingOverflow(by: space.f_frsize)
            return overflow ? FileSystemSpace.most : min(Int64(clamping: product), FileSystemSpace.most)
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

/// The file system in memory whose files processes map to share memory: shm_overview(7).
package enum SharedMemory {
    package static let path = "/dev/shm"

    /// Opens the directory of shared memory.
    ///
    /// - Throws: ``Errno/noDevice`` if the directory is on a file system that is not in memory, where a store into a
    ///   mapped file might need space.
    package static func open() throws(Errno) -> Directory {
        let directory = try Directory(opening: path)
        guard try directory.descriptor.fileSystem().kind.isVolatile else { throw .noDevice }
        return directory
    }
}
