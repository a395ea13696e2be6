// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// The built `diskcache`, run as its users run it.
public struct Tool: Sendable {
    /// What a run left behind.
    public struct Run: Sendable {
        /// The exit status; a signal that ended the process counts as 128 and its number, as in a shell.
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

    /// Where the command was built: beside this test program.
    public static let path: String = {
        let program = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let beside = program.deletingLastPathComponent().appendingPathComponent("diskcache").path
        precondition(FileManager.default.isExecutableFile(atPath: beside), "build diskcache first: \(beside)")
        return beside
    }()

    /// The cache directory of all runs, a fresh one that does not exist yet unless told otherwise.
    public let directory: String
    private let scratch: TemporaryDirectory

    /// A tool with a fresh place to work in.
    public init() throws {
        scratch = try TemporaryDirectory()
        directory = scratch.path + "/cache"
    }

    /// A path in the fresh place, outside the cache directory.
    public func path(_ name: String) -> String {
        "\(scratch.path)/\(name)"
    }

    /// The cache of all runs, opened by the test program.
    ///
    /// Without a janitor: what a command has left, nobody collects before the test looks at it. (A collection that was cut
    /// short another janitor goes on with at once.)
    public func cache(_ change: (inout CacheConfiguration) -> Void = { _ in }) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        change(&configuration)
        return try SharedCache(at: directory, configuration: configuration)
    }

    /// Runs `diskcache` with `arguments` on the directory, which the environment names.
    public func run(
        _ arguments: String...,
        input: Data = Data(),
        environment: [String: String] = [:]
    ) throws -> Run {
        try execute(Self.path, arguments, input: input, environment: environment)
    }

    /// Runs `diskcache` with `arguments` on the directory, which the environment names.
    public func run(_ arguments: [String], input: Data = Data()) throws -> Run {
        try execute(Self.path, arguments, input: input, environment: [:])
    }

    /// Runs a script of bash that finds the command as `$TOOL` and the cache as `$DISKCACHE_DIR`.
    public func shell(_ script: String, input: Data = Data()) throws -> Run {
        try execute("/bin/bash", ["-c", script], input: input, environment: ["TOOL": Self.path])
    }

    /// The files below a part of the cache directory, relative to it.
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
        // Files instead of pipes: nothing to read at the same time, and no end to block on.
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

    /// The tests' own, less what would lead the command elsewhere.
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
