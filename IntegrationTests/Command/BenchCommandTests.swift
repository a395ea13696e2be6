// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

/// Tests of `diskcache bench` with the built command.
@Suite(.takesTurns) struct BenchCommandTests {
    private let place: TemporaryDirectory
    private let quick = ["--workers", "2", "--operations", "100", "--keys", "10", "--size", "1K"]

    init() throws {
        place = try TemporaryDirectory()
    }

    private func bench(_ arguments: [String]) throws -> (output: String, status: Int32) {
        try BuiltCommand.run(BuiltCommand.path, ["--dir", place.path, "bench"] + arguments)
    }

    private var remains: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: place.path) }
    }

    @Test
    func `bench prints its measurements and leaves no files`() throws {
        let run = try bench(quick)
        #expect(run.status == 0)
        let lines = run.output.split(separator: "\n")
        #expect(lines[0].hasPrefix("2 processes, 10 keys, values of 1.0 KiB: "))
        #expect(
            lines[2].hasPrefix("gets ") && lines.contains { $0.hasPrefix("hits ") && $0.contains("wrong 0") }
        )
        #expect(lines.last?.hasPrefix("sound: 10 keys, 10 values, ") ?? false)
        #expect(try remains.isEmpty)
    }

    private func result(_ words: [String]) throws -> [String: Any] {
        let run = try bench(words + ["--json"])
        #expect(run.status == 0)
        return try #require(try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any])
    }

    /// Returns the number of the result at a dotted path, or -1 if it is absent.
    private func number(_ path: String, in result: [String: Any]) -> Int {
        let parts = path.split(separator: ".").map(String.init)
        let last = parts.dropLast().reduce(result) { $0[$1] as? [String: Any] ?? [:] }
        return last[parts[parts.count - 1]] as? Int ?? -1
    }

    @Test
    func `the JSON output reports the plan, the counts, the kills and the leftovers`() throws {
        let result = try result(quick + ["--gc", "--kill", "50ms", "--puts", "30", "--removals", "10"])
        #expect(number("plan.workers", in: result) == 2 && number("plan.removals", in: result) == 10)
        let calls = ["gets.count", "puts.count", "counts.removals"].map { number($0, in: result) }
        #expect(calls.allSatisfy { $0 > 0 } && calls.reduce(0, +) >= 100)
        #expect(number("counts.wrong", in: result) == 0 && number("counts.failures", in: result) == 0)
        #expect(number("kills", in: result) > 0 && number("counts.collections", in: result) > 0)
        #expect((0...10).contains(number("leftovers.verify.entries", in: result)))
        #expect(number("leftovers.temporaries", in: result) == 0)
    }

    @Test
    func `a run can be limited by time alone, and leaves no key without a value`() throws {
        for puts in ["0", "10", "100"] {
            let result = try result(["-s", "100ms", "-w", "1", "--keys", "20", "--puts", puts])
            #expect(number("counts.misses", in: result) == 0)
            #expect(number("leftovers.verify.entries", in: result) == 20)
        }
    }

    @Test(arguments: [Signal.interrupt, .terminate, .hangup])
    func `a signal ends bench and its workers and removes its directory`(signal: Signal) throws {
        var process = try ChildProcess(
            starting: BuiltCommand.path,
            ["--dir", place.path, "bench", "--seconds", "600", "--keys", "10"]
        )
        try waitUntil("its directory is there") { try !remains.isEmpty }
        process.send(signal)
        #expect(try process.wait() == .killed(signal))
        #expect(try remains.isEmpty)
    }

    @Test
    func `a worker ends when the pipe from its parent closes`() throws {
        let plan = try BenchWorkerCommand.words(BenchPlan(), stream: 1)
        // The worker's standard input is a pipe whose writer ends after 0.1 s.
        let script = "sleep 0.1 | \"$@\" | tail -n 1"
        let run = try BuiltCommand.run(
            "/bin/sh",
            ["-c", script, "sh", BuiltCommand.path, "--dir", place.path + "/cache"] + plan
        )
        #expect(run.status == 0)
        #expect(try JSONDecoder().decode(BenchReport.self, from: Data(run.output.utf8)).operations > 0)
    }

    @Test
    func `bench reports a crashed worker`() throws {
        let cache = try SharedCache(at: place.path + "/cache")
        let program = WorkerProgram(
            executable: BuiltCommand.path,
            environment: ["DISKCACHE_METADATA": "none"]
        )
        var bench = Bench(BenchPlan(), on: cache, program: program)
        let result = try bench.run()
        #expect(result.status == .internal && !result.crashes.isEmpty)
    }

    @Test
    func `SIGQUIT ends a command without an error message`() throws {
        let errors = place.path + "/errors"
        let script = "exec \"$0\" -d \"$1/cache\" put k 2> \"$1/errors\""
        var process = try ChildProcess(
            starting: "/bin/sh",
            ["-c", script, BuiltCommand.path, place.path]
        )
        // Longer than a pipe holds: once all of it is sent, the command is reading its input. During its start, handlers of
        // Swift's runtime would swallow the signal.
        try process.send(String(repeating: "x", count: 1 << 20))
        process.send(.quit)
        #expect(try process.wait() == .killed(.quit))
        #expect(try String(contentsOfFile: errors, encoding: .utf8).isEmpty)
    }

    @Test func `a missing parent directory is an error and is not created`() throws {
        let run = try BuiltCommand.run(BuiltCommand.path, ["-d", place.path + "/a/b", "bench"])
        #expect(run.status == 73)
        #expect(try remains.isEmpty)
    }

    @Test(arguments: [["--workers", "0"], ["operand"], ["--nonsense"]])
    func `invalid arguments are a usage error`(words: [String]) throws {
        #expect(try bench(words).status == 64)
        #expect(try remains.isEmpty)
    }
}
