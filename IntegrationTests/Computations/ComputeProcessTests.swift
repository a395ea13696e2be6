// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of single-flight computations by processes that share only the directory.
@Suite(.takesTurns) struct ComputeProcessTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func `eight processes compute a value once`() async throws {
        let probes = try (0..<8).map { _ in try start(computing: 500, isWaiting: true) }
        for probe in probes { try await probe.expectLine("ready") }
        makeFile(path("go"))
        for probe in probes { try await probe.expectLine("done") }
        #expect(computations == 1)
        #expect(lockFiles.isEmpty)
    }

    @Test func `exactly one process takes over at once if the computing process is killed`() async throws {
        let victim = try start(computing: 600_000, isWaiting: false)
        try await until { computations == 1 }
        let probes = try (0..<7).map { _ in try start(computing: 300, isWaiting: false) }
        for probe in probes { try await probe.expectLine("ready") }
        // Time for the processes to find the lock held; one that does not finds it free, which does no harm.
        try await Task.sleep(for: .milliseconds(100))
        #expect(computations == 1)
        #expect(kill(victim.process.processIdentifier, SIGKILL) == 0)
        let killed = ContinuousClock.now
        for probe in probes { try await probe.expectLine("done") }
        #expect(ContinuousClock.now - killed < hangLimit / 5, "nobody waits for a time-out")
        #expect(computations == 2)
        #expect(lockFiles.isEmpty, "who took over has removed the file")
    }

    @Test func `a killed process blocks no other process`() async throws {
        let victim = try start(computing: 600_000, isWaiting: false)
        try await until { computations == 1 }
        let cache = try await SharedCache.open(at: path("cache"))
        #expect(
            try holder(cache) == victim.process.processIdentifier,
            "who waits can ask for whom"
        )
        #expect(kill(victim.process.processIdentifier, SIGKILL) == 0)
        victim.process.waitUntilExit()
        #expect(lockFiles.count == 1, "it is left until gc or the next one takes it")
        let reading = ReadOptions(waitLimit: .zero, failsAtWaitLimit: true)
        let hit = try await cache.hit(forKey: "key", reading: reading) { _ in .value(Data("done".utf8)) }
        #expect(hit?.value == Data("done".utf8))
        #expect(lockFiles.isEmpty)
    }

    @Test func `eight processes that want the same keys in other orders compute each once`() async throws {
        let probes = try (0..<8).map { _ in try start(computing: 20, isWaiting: true, keys: 500) }
        for probe in probes { try await probe.expectLine("ready") }
        makeFile(path("go"))
        for probe in probes { try await probe.expectLine("done") }
        #expect(computedKeys.count == 500 && Set(computedKeys).count == 500)
        #expect(lockFiles.isEmpty)
    }

    @Test func `other processes compute the batch that a killed process has left`() async throws {
        let victim = try start(computing: 600_000, isWaiting: false, keys: 100)
        try await until { computedKeys.count == 100 }
        let probes = try (0..<4).map { _ in try start(computing: 20, isWaiting: false, keys: 100) }
        for probe in probes { try await probe.expectLine("ready") }
        #expect(kill(victim.process.processIdentifier, SIGKILL) == 0)
        for probe in probes { try await probe.expectLine("done") }
        #expect(computedKeys.count == 200, "each once more")
        #expect(lockFiles.isEmpty, "who took over has removed the files")
    }

    private func holder(_ cache: SharedCache) throws -> Int32? {
        try cache.directory.explanation(forKey: "key").computedBy?.processIdentifier
    }

    // MARK: Helpers

    private func path(_ name: String) -> String { directory.path + "/" + name }

    /// The number of computations that have started.
    private var computations: Int { (FileManager.default.contents(atPath: path("log"))?.count ?? 0) / 2 }

    /// The computed keys of batches, each once per computation.
    private var computedKeys: [String] {
        let log = FileManager.default.contents(atPath: path("log")) ?? Data()
        let text = String(decoding: log, as: UTF8.self)
        return text.split(separator: "\n").map(String.init)
    }

    private var lockFiles: [String] {
        directory.files(below: "cache/locks").filter { $0.hasPrefix("flight-") }
    }

    private func start(computing milliseconds: Int, isWaiting: Bool, keys: Int? = nil) throws -> Probe {
        let words = [path("cache"), path("log"), isWaiting ? path("go") : "-", "\(milliseconds)"]
        return try Probe(words + (keys.map { ["\($0)"] } ?? []))
    }

    private func until(_ condition: () -> Bool) async throws {
        await waitUntil("it computes", condition)
    }
}

/// A process that requests the value, and is killed when this object is released.
private final class Probe: Sendable {
    let process: Process
    private let output: FileHandle

    init(_ arguments: [String]) throws {
        process = Process()
        process.executableURL = URL(fileURLWithPath: BuiltCommand.probes)
        process.arguments = ["compute"] + arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        output = pipe.fileHandleForReading
        try process.run()
    }

    deinit {
        kill(process.processIdentifier, SIGKILL)
    }

    /// Checks the next line of the output, which it reads on a separate thread.
    func expectLine(_ text: String) async throws {
        let line = await withCheckedContinuation { continuation in
            Thread.detachNewThread { [output] in
                var line = Data()
                while let byte = try? output.read(upToCount: 1), byte != Data("\n".utf8), !byte.isEmpty {
                    line += byte
                }
                continuation.resume(returning: line)
            }
        }
        #expect(line == Data(text.utf8))
    }
}
