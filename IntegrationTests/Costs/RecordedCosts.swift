// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The recorded costs of operations: `Expectations/costs.json`.
///
/// Another compiler or valgrind counts differently, so the versions of both are recorded, too.
struct RecordedCosts: Codable, Equatable {
    /// The version of the compiler, such as "Swift version 6.3.1 (swift-6.3.1-RELEASE)".
    var compiler: String
    /// The version of valgrind, such as "valgrind-3.19.0".
    var valgrind: String
    /// The architecture, such as "x86_64".
    var architecture: String
    /// The allocator calls of one repetition, by operation of the probe.
    var allocations: [String: Double]
    /// The instructions of one repetition in user mode, by operation of the probe.
    var instructions: [String: Double]

    private static let file = PackageFiles.tests.appendingPathComponent("Expectations/costs.json")

    /// The costs in the file, or nil if it can't be read.
    static let recorded = try? JSONDecoder().decode(Self.self, from: Data(contentsOf: file))

    /// Replaces the contents of the file.
    func record() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        var data = try encoder.encode(self)
        data.append(UInt8(ascii: "\n"))
        try data.write(to: Self.file)
    }
}

/// The installed tools that count the costs.
enum CountingTools {
    static let compiler = firstLine("swift --version")
    static let valgrind = firstLine("valgrind --version")
    static let hasClang = firstLine("clang --version") != nil
    static let architecture = firstLine("uname -m") ?? "unknown"
    /// Whether the kernel has the calls that the cache prefers, which came with Linux 6.13; older kernels get other calls.
    static let hasAttributeCalls: Bool = {
        let numbers = (firstLine("uname -r") ?? "").split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 13)
    }()

    private static func firstLine(_ command: String) -> String? {
        let run = try? BuiltCommand.run("/bin/sh", ["-c", "\(command) 2>/dev/null"])
        guard let run, run.status == 0 else { return nil }
        return run.output.split(separator: "\n").first.map(String.init)
    }
}

/// The probe that `swift build -c release` builds, whatever the configuration of the tests.
enum OptimizedProbe {
    static let file = root.appendingPathComponent("Probes")
    private static let root = PackageFiles.root.appendingPathComponent(".build/release")

    /// Whether the probe exists and is newer than its sources.
    static let isCurrent: Bool = {
        guard let built = modification(file) else { return false }
        let parts = ["Sources/CPlatform", "Sources/Platform", "Sources/CacheStore", "Sources/DiskCache"]
        return (parts + ["IntegrationTests/Probes"]).allSatisfy { part in
            let directory = PackageFiles.root.appendingPathComponent(part)
            let files = FileManager.default.enumerator(atPath: directory.path)?.allObjects as? [String] ?? []
            return files.filter { $0.hasSuffix(".swift") || $0.hasSuffix(".c") || $0.hasSuffix(".h") }
                .allSatisfy { modification(directory.appendingPathComponent($0)) ?? .distantFuture <= built }
        }
    }()

    private static func modification(_ file: URL) -> Date? {
        try? FileManager.default.attributesOfItem(atPath: file.resolvingSymlinksInPath().path)[
            .modificationDate
        ]
            as? Date
    }

    /// Runs a script of `Scripts`, and returns the number at the beginning of its output.
    static func count(_ script: String, _ operation: String, times: Int) throws -> Double {
        let path = PackageFiles.tests.appendingPathComponent("Scripts/\(script)").path
        let run = try BuiltCommand.run("/bin/sh", [path, file.path, operation, "\(times)"])
        guard run.status == 0, let number = run.output.split(separator: " ").first.flatMap({ Double($0) })
        else { throw CountingFailure(script: script, operation: operation, output: run.output) }
        return number
    }
}

struct CountingFailure: Error {
    let script: String
    let operation: String
    let output: String
}
