// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A fresh directory on the disk, removed with everything in it when this goes.
public final class TemporaryDirectory: Sendable {
    /// Its path, without a slash at the end.
    public let path: String

    /// Below `base`; without one below `$DISKCACHE_TEST_DIR`, by which the tests can be run on another file system,
    /// else the system's temporary directory.
    public init(below base: String? = nil) throws {
        let base = base ?? ProcessInfo.processInfo.environment["DISKCACHE_TEST_DIR"] ?? NSTemporaryDirectory()
        path = URL(fileURLWithPath: base).appendingPathComponent("diskcache-test-" + UUID().uuidString).path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        // Tests take permissions away; without them the tree can't be removed.
        _ = try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The paths of all files (no directories) below `subdirectory`, relative to it, sorted.
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

/// Makes a file with these contents; a test that can't do that is broken.
public func makeFile(_ path: String, _ contents: String = "") {
    precondition(FileManager.default.createFile(atPath: path, contents: Data(contents.utf8)), path)
}
