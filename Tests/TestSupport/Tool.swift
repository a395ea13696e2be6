// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// The built `diskcache` command, executed as a user would.
public struct Tool: Sendable {
    /// The result of an execution.
    public struct Run: Sendable {
        /// The exit status, or 128 plus the number of the signal that ended the process, as in a shell.
        public let status: Int32
        /// Standard output.
        public let outputData: Data
        /// Standard error.
        public let errorData: Data

        /// Standard output as text.
        public var output: String { String(decoding: outputData, as: UTF8.self) }
        /// Standard error as text.
        public var error: String { String(decoding: errorData, as: UTF8.self) }
        /// Standard output as lines, without the newlines.
        public var lines: [String] { output.split(separator: "\n").map(String.init) }
    }

    /// The path of the built command, next to this test program.
    public static let path: String = {
        let program = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let beside = program.deletingLastPathComponent().appendingPathComponent("diskcache").path
        precondition(FileManager.default.isExecutableFile(atPath: beside), "build diskcache first: \(beside)")
        return beside
    }()

    /// The cache directory of all executions, which does not exist at first.
    public let directory: String
    private let scratch: TemporaryDirectory

    /// Creates a tool with a new scratch directory.
    public init() throws {
        scratch = try TemporaryDirectory()
        directory = scratch.path + "/cache"
    }

    /// Returns a path in the scratch directory, outside the cache directory.
    public func path(_ name: String) -> String {
        "\(scratch.path)/\(name)"
    }

    /// Opens the cache of all executions in the test program.
    ///
    /// The cache has no janitor, which would collect files that a command has left before the test checks them. (A
    /// janitor continues an interrupted collection at once.)
    public func cache(_ change: (inout CacheConfiguration) -> Void = { _ in }) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        change(&configuration)
        return try SharedCache(at: directory, configuration: configuration)
    }

    /// Runs `diskcache` with `arguments` on the directory, which is passed in the environment.
    public func run(
        _ arguments: String...,
        input: Data = Data(),
        environment: [String: String] = [:]
    ) throws -> Run {
        try execute(Self.path, arguments, input: input, environment: environment)
    }

    /// Runs `diskcache` with `arguments` on the directory, which is passed in the environment.
    public func run(_ arguments: [String], input: Data = Data()) throws -> Run {
        try execute(Self.path, arguments, input: input, environment: [:])
    }

    /// Runs a bash script, with the path of the command in `$TOOL` and the cache directory in `$DISKCACHE_DIR`.
    public func shell(_ script: String, input: Data = Data()) throws -> Run {
        try execute("/bin/bash", ["-c", script], input: input, environment: ["TOOL": Self.path])
    }

    /// Returns the files below a part of the cache directory, relative to it.
    public func files(_ part: String = "") -> [String] {
        scratch.files(below: "cache/" + part)
    }

    private func execute(
        _ program: String,
        _ arguments: [String],
        input: Data,
        environment: [String: String]
    ) throws -> Run {
        let id = UUID().uuidString
        let files = ["in", "out", "err"].map { path("\(id).\($0)") }
        defer { for file in files { try? FileManager.default.removeItem(atPath: file) } }
        // Files instead of pipes, so that nothing must be read during the run, and no pipe can block.
        try input.write(to: URL(fileURLWithPath: files[0]))
        for file in files[1...] { makeFile(file) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = self.environment.merging(environment) { $1 }
        process.standardInput = FileHandle(forReadingAtPath: files[0])
        process.standardOutput = FileHandle(forWritingAtPath: files[1])
        process.standardError = FileHandle(forWritingAtPath: files[2])
        try process.run()
        process.waitUntilExit()
        let isSignal = process.terminationReason == .uncaughtSignal
        return Run(
            status: process.terminationStatus + (isSignal ? 128 : 0),
            outputData: try Data(contentsOf: URL(fileURLWithPath: files[1])),
            errorData: try Data(contentsOf: URL(fileURLWithPath: files[2]))
        )
    }

    /// The environment of the tests, without variables that would change the behavior of the command.
    private var environment: [String: String] {
        var environment = ProcessInfo.processInfo.environment
        for name in [
            "XDG_CACHE_HOME", "DISKCACHE_METADATA", "DISKCACHE_SCOPE", "DISKCACHE_TTL", "NO_COLOR",
            "POSIXLY_CORRECT", "DISKCACHE_REMOTE_CREDENTIALS",
        ] { environment[name] = nil }
        environment["HOME"] = scratch.path
        environment["DISKCACHE_DIR"] = directory
        return environment
    }
}
