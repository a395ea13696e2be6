// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A file system of its own, mounted for one test.
///
/// Needs to be root.
public final class Mount {
    /// Where the mount point is.
    public let directory: TemporaryDirectory
    /// The mount point.
    public let path: String

    /// Mounts a file system of `type` in a fresh directory, until this goes.
    public init(_ type: String, options: String = "rw") throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/mount"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try Self.run("mount", "-t", type, "-o", options, type, path)
    }

    deinit {
        try? Self.run("umount", "--lazy", path)
    }

    /// Changes its options.
    public func remount(_ options: String) throws {
        try Self.run("mount", "-o", "remount," + options, path)
    }

    private static func run(_ words: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.fileWriteNoPermission) }
    }

    /// Whether this process may mount anything.
    public static let isAllowed = (try? Mount("tmpfs", options: "size=64k")) != nil
}
