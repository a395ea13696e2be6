// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A new directory on disk, removed with its contents when this object is released.
public final class TemporaryDirectory: Sendable {
    /// The path, without a trailing slash.
    public let path: String

    /// Makes a directory below `base`, `$DISKCACHE_TEST_DIR` or the system's temporary directory, the first that is set.
    ///
    /// `$DISKCACHE_TEST_DIR` is for tests on another file system.
    public init(below base: String? = nil) throws {
        let base = base ?? ProcessInfo.processInfo.environment["DISKCACHE_TEST_DIR"] ?? NSTemporaryDirectory()
        path = URL(fileURLWithPath: base).appendingPathComponent("diskcache-test-" + UUID().uuidString).path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        // Tests may have removed permissions, without which the tree can't be removed.
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

/// Makes a file with these contents, and traps if that fails.
public func makeFile(_ path: String, _ contents: String = "") {
    precondition(FileManager.default.createFile(atPath: path, contents: Data(contents.utf8)), path)
}
