// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

/// The built command, which is in the directory of the test program.
enum BuiltCommand {
    static let path = path(of: "diskcache")
    /// The program with the probes.
    static let probes = path(of: "Probes")
    /// The simulator.
    static let simulator = path(of: "Simulator")

    private static func path(of name: String) -> String {
        let program = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        return program.deletingLastPathComponent().appendingPathComponent(name).path
    }

    /// Runs a program to its end, and returns its standard output and its exit status.
    static func run(_ program: String, _ arguments: [String]) throws -> (output: String, status: Int32) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        let pipe = Foundation.Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (String(decoding: data, as: UTF8.self), process.terminationStatus)
    }
}

/// Returns a process that has stopped itself at `place` of an operation on the key "key" (see `StopProbe`).
func stoppedProcess(at place: String, in directory: String) throws -> ChildProcess {
    let process = try ChildProcess(starting: BuiltCommand.probes, ["stop", directory, "key", "value", place])
    #expect(try process.output.readAvailable() == Array("stopping\n".utf8))
    while try processState(process.identifier) != "T" {
        try #require(try processState(process.identifier) != "Z", "it was to stop and not to end")
        usleep(100)
    }
    return process
}

/// Returns the state, the letter after the name in /proc/PID/stat: "1234 (diskcache) T …".
func processState(_ process: Int32) throws -> String {
    let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
    return text.split(separator: ")").last?.split(separator: " ").first.map(String.init) ?? ""
}

/// The form of the metadata of a cache in a test.
enum Form: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case automatic, sidecar

    var testDescription: String { rawValue }

    var program: WorkerProgram {
        WorkerProgram(executable: BuiltCommand.path, environment: ["DISKCACHE_METADATA": rawValue])
    }

    var configuration: CacheConfiguration {
        var configuration = CacheConfiguration()
        if self == .sidecar { configuration.metadataForm = .sidecar }
        return configuration
    }
}

/// A separate file system, which is unmounted when this object is released.
final class MountedFileSystem {
    let path: String
    private let place: TemporaryDirectory

    /// Whether ramfs can be mounted, which has no extended attributes, so that a cache needs sidecars there.
    static let canMountRAMFS = (try? MountedFileSystem("ramfs")) != nil

    init(_ type: String) throws {
        place = try TemporaryDirectory()
        path = place.path + "/mounted"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let status = try BuiltCommand.run("/bin/mount", ["-t", type, "none", path]).status
        guard status == 0 else { throw CocoaError(.fileWriteNoPermission) }
    }

    deinit {
        _ = try? BuiltCommand.run("/bin/umount", ["-l", path])
    }
}

/// The contents of a cache directory, found without the library: by plain file names and `sha256sum`.
struct DirectoryAudit {
    /// The names of the files below `objects` and `entries`.
    let objects: Set<String>
    let entries: Set<String>
    /// All other files except the locks, relative to the directory.
    let others: Set<String>
    /// The objects whose name differs from the `sha256sum` of their bytes.
    let misnamed: [String]

    init(of directory: String) throws {
        var objects: Set<String> = []
        var entries: Set<String> = []
        var others: Set<String> = []
        let enumerator = FileManager.default.enumerator(atPath: directory)
        while let path = enumerator?.nextObject() as? String {
            if enumerator?.fileAttributes?[.type] as? FileAttributeType == .typeDirectory { continue }
            let parts = path.split(separator: "/").map(String.init)
            let isFiled = parts.count == 3 && parts[2].count == 64 && parts[2].hasPrefix(parts[1])
            switch parts[0] {
            case "objects" where isFiled: objects.insert(parts[2])
            case "entries" where isFiled: entries.insert(parts[2])
            case "locks": continue
            default: others.insert(path)
            }
        }
        self.objects = objects
        self.entries = entries
        self.others = others
        let script = "cd \"$1/objects\" && find . -type f -print0 | xargs -0 -r sha256sum"
        let sums = try BuiltCommand.run("/bin/sh", ["-c", script, "sh", directory])
        guard sums.status == 0 else { throw CocoaError(.fileReadUnknown) }
        misnamed = sums.output.split(separator: "\n").map(String.init).filter { line in
            // "<64 digits>  ./ab/<64 digits>"
            !line.hasSuffix("/" + line.prefix(64))
        }
    }

    /// Checks that there are only entries, the objects that they name, and the files of every cache.
    func expectNoLeftovers(_ cache: SharedCache) throws {
        let known = try cache.entries().map { try $0.get() }
        #expect(objects == Set(known.map(\.digest.description)), "every object is named, every name has one")
        #expect(entries == Set(known.map(\.keyDigest.description)), "every entry file can be read")
        #expect(misnamed.isEmpty)
        let own: Set<String> = [
            "CACHEDIR.TAG", "README", "format", "config.json", "control", "candidates", "rules", "outbox",
            "outbox.1", "versions",
        ]
        #expect(others.subtracting(own).isEmpty)
    }
}
