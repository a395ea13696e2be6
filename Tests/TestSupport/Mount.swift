// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A file system that is mounted for one test.
///
/// Requires root.
public final class Mount {
    /// The directory that contains the mount point.
    public let directory: TemporaryDirectory
    /// The path of the mount point.
    public let path: String

    /// Mounts a file system of `type` in a new directory until this object is released.
    public init(_ type: String, options: String = "rw") throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/mount"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try Self.run("mount", "-t", type, "-o", options, type, path)
    }

    /// Formats an image of this size in MiB with `mkfs.`*type* and these options, and mounts it until this object is
    /// released.
    public init(imageOf type: String, megabytes: Int, _ options: [String] = []) throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/mount"
        let image = directory.path + "/image"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try Self.run("truncate", "--size=\(megabytes)M", image)
        try Self.run(["mkfs." + type, "-q"] + options + [image])
        try Self.run("mount", "-t", type, "-o", "loop", image, path)
    }

    deinit {
        try? Self.run("umount", "--lazy", path)
    }

    /// Remounts the file system with other options.
    ///
    /// Retries while the remount fails: a released cache closes its files only a moment later, and a new child process
    /// holds this process's open files until it executes its program.
    public func remount(_ options: String) throws {
        try Self.patiently { try Self.run("mount", "-o", "remount," + options, path) }
    }

    private static func patiently(_ body: () throws -> Void) throws {
        let end = ContinuousClock.now + hangLimit
        while true {
            do {
                return try body()
            } catch  where ContinuousClock.now < end {
                Thread.sleep(forTimeInterval: 0.002)
            }
        }
    }

    /// Fills the file system with files next to the cache, and syncs the file system.
    public func fill() throws {
        let script = """
            cd "$1" && n=0
            for size in 64M 8M 1M 64k 4k; do
                while fallocate -l $size "filler-$n" 2>/dev/null; do n=$((n + 1)); done; rm -f "filler-$n"
            done
            while [ $n -lt 5000 ] && head -c 3000 /dev/zero 2>/dev/null > "filler-$n"; do n=$((n + 1)); done 2>/dev/null
            sync -f .
            """
        try Self.run("sh", "-c", script, "sh", path)
    }

    /// Sets the change times of files in an ext4 image; the files are named by their paths below the mount point.
    ///
    /// Waits until none of the image's files is open, and unmounts the image temporarily.
    public func setChangeTime(of files: [String], to moment: Date) throws {
        let image = directory.path + "/image"
        let commands = directory.path + "/commands"
        let seconds = Int(moment.timeIntervalSince1970)
        try files.map { "sif /\($0) ctime @\(seconds)\n" }.joined()
            .write(toFile: commands, atomically: false, encoding: .utf8)
        try Self.patiently { try Self.run("umount", path) }
        try Self.run("debugfs", "-w", "-f", commands, image)
        try Self.run("mount", "-t", "ext4", "-o", "loop", image, path)
    }

    /// Syncs the file system.
    public func synchronize() throws {
        try Self.run("sync", "-f", path)
    }

    /// Whether this process can mount images of this type; that includes that the programs to create them are installed.
    public static func canFormat(_ type: String) -> Bool {
        (try? Mount(imageOf: type, megabytes: type == "xfs" ? 320 : 160)) != nil
    }

    /// The error of a command that failed.
    private struct Failure: Error {
        let words: [String]
    }

    private static func run(_ words: String...) throws { try run(words) }

    private static func run(_ words: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(words: words) }
    }

    /// Whether this process may mount file systems.
    public static let isAllowed = (try? Mount("tmpfs", options: "size=64k")) != nil
}
