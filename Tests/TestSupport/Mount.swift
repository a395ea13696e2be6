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

    /// Formats an image of so many MiB with `mkfs.`*type*, with these options, and mounts that, until this goes.
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

    /// Changes its options.
    ///
    /// Tried again for as long as it fails: a cache that is let go closes its files a moment later, and a process that
    /// is just being started has this one's open until it executes its program.
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

    /// Writes until nothing more fits, in files beside the cache, and has all of it on the medium.
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

    /// Sets the change times of files of an ext4 image, named by their paths below the mount point.
    ///
    /// The image is unmounted for it, as soon as none of its files is open.
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

    /// Has everything on the medium.
    public func synchronize() throws {
        try Self.run("sync", "-f", path)
    }

    /// Whether this process may mount images of this type, and has what makes them.
    public static func canFormat(_ type: String) -> Bool {
        (try? Mount(imageOf: type, megabytes: type == "xfs" ? 320 : 160)) != nil
    }

    /// A command that has failed.
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

    /// Whether this process may mount anything.
    public static let isAllowed = (try? Mount("tmpfs", options: "size=64k")) != nil
}
