// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A new directory on disk, removed with its contents when this object is released.
public final class TemporaryDirectory: Sendable {
    /// The path, without a trailing slash.
    public let path: String

    /// Creates a directory below `base`, `$DISKCACHE_TEST_DIR` or the system's temporary directory, the first that is
    /// set.
    ///
    /// Use `$DISKCACHE_TEST_DIR` to test on another file system.
    public init(below base: String? = nil) throws {
        let parent = base.map { URL(fileURLWithPath: $0) } ?? Self.parent
        path = parent.appendingPathComponent("diskcache-test-" + UUID().uuidString).path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    /// The parent directory for this process, removed when the process exits.
    ///
    /// On ext4 it has the flag `T`, as set by `chattr +T`, so that ext4 places each directory in it in a different block
    /// group. Without a journal, ext4 does not reuse a deleted inode for some seconds, and each creation of a file
    /// searches all such inodes of its block group. With a single block group, this took two fifths of the time of all
    /// tests.
    private static let parent: URL = {
        let base = ProcessInfo.processInfo.environment["DISKCACHE_TEST_DIR"] ?? NSTemporaryDirectory()
        let parent = URL(fileURLWithPath: base).appendingPathComponent("diskcache-tests-\(getpid())")
        try? FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
        setTopOfHierarchy(parent.path)
        // Removes caches that tests have left open.
        atexit { try? FileManager.default.removeItem(at: TemporaryDirectory.parent) }
        return parent
    }()

    /// Sets the flag `T`; does nothing on a file system without this flag.
    private static func setTopOfHierarchy(_ path: String) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(descriptor) }
        // FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_TOPDIR_FL from linux/fs.h, which Swift does not import.
        var flags: Int32 = 0
        guard ioctl(descriptor, 0x8008_6601, &flags) == 0 else { return }
        flags |= 0x0002_0000
        _ = ioctl(descriptor, 0x4008_6602, &flags)
    }

    deinit {
        // A test may have removed permissions that are needed to delete the tree.
        _ = try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Returns the sorted paths of all files (not directories) below `subdirectory`, relative to it.
    public func files(below subdirectory: String = "") -> [String] {
        let root = subdirectory.isEmpty ? path : path + "/" + subdirectory
        let names = FileManager.default.enumerator(atPath: root)?.allObjects as? [String] ?? []
        return names.filter { name in
            var isDirectory: ObjCBool = false
            return FileManager.default.fileExists(atPath: root + "/" + name, isDirectory: &isDirectory)
                && !isDirectory.boolValue
        }.sorted()
    }
}

/// Creates a file with these contents; traps if that fails.
public func makeFile(_ path: String, _ contents: String = "") {
    precondition(FileManager.default.createFile(atPath: path, contents: Data(contents.utf8)), path)
}
