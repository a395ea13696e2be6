// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import diskcache

/// `diskcache bench` as its users run it.
@Suite(.takesTurns) struct BenchCommandTests {
    private let place: TemporaryDirectory
    private let quick = ["--workers", "2", "--operations", "50", "--keys", "10", "--sizes", "1K"]

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
    func `it prints a row for each workload and leaves nothing behind`() throws {
        let run = try bench(quick)
        #expect(run.status == 0)
        let words = run.output.split(separator: "\n").map { $0.split(separator: " ").first ?? "" }
        #expect(words.starts(with: ["workload", "put", "get", "mixed"]))
        #expect(run.output.contains("clean: 10 entries"))
        #expect(try remains.isEmpty)
    }

    @Test
    func `its JSON tells the same`() throws {
        let run = try bench(quick + ["--json", "--gc", "--workload", "mixed"])
        #expect(run.status == 0)
        let result = try JSONDecoder().decode(BenchResult.self, from: Data(run.output.utf8))
        let row = try #require(result.rows.first)
        #expect(result.rows.count == 1 && row.workload == .mixed && row.workers == 2)
        #expect(row.operations == 100 && row.wrong == 0 && row.misses == 0)
        #expect(result.leftovers?.isClean == true && result.leftovers?.verification.entries == 10)
    }

    @Test
    func `a kept directory is a cache with the keys in it`() throws {
        #expect(try bench(quick + ["--keep"]).status == 0)
        let name = try #require(try remains.first)
        #expect(name.hasPrefix("diskcache-bench-"))
        #expect(try DirectoryAudit(of: place.path + "/" + name).entries.count == 10)
    }

    @Test
    func `a corpus gives keys and values`() throws {
        let corpus = try TemporaryDirectory()
        for index in 0..<5 {
            makeFile(corpus.path + "/file\(index)", String(repeating: "x", count: 1000 * index))
        }
        let run = try bench(["--corpus", corpus.path, "-n", "50", "-w", "2"])
        #expect(run.status == 0)
        #expect(run.output.contains("corpus: 5 files, 9.8 KiB"))
        #expect(run.output.contains("clean: 5 entries"))
    }

    @Test(arguments: [Signal.interrupt, .terminate, .hangup])
    func `a signal ends it by that signal, with its workers and its directory`(signal: Signal) throws {
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
    func `a worker whose starter dies goes too`() throws {
        var plan = WorkerPlan(directory: place.path + "/cache", task: .put, stream: 1)
        plan.seconds = 3600
        // head goes after two messages; the shell waits for both.
        let script = "echo go | \"$1\" bench-worker \"$2\" | head -n 2 >/dev/null"
        let arguments = ["-c", script, "sh", BuiltCommand.path, try plan.argument]
        #expect(try BuiltCommand.run("/bin/sh", arguments).status == 0)
    }

    @Test
    func `SIGQUIT ends the command without a word`() throws {
        let errors = place.path + "/errors"
        let script = "exec \"$0\" -d \"$1/cache\" put k 2> \"$1/errors\""
        var process = try ChildProcess(
            starting: "/bin/sh",
            ["-c", script, BuiltCommand.path, place.path]
        )
        // The shell becomes the command, which then waits for its input.
        let name = "/proc/\(process.identifier)/comm"
        try waitUntil("the command runs") {
            try String(contentsOfFile: name, encoding: .utf8) == "diskcache\n"
        }
        process.send(.quit)
        #expect(try process.wait() == .killed(.quit))
        #expect(try String(contentsOfFile: errors, encoding: .utf8).isEmpty)
    }

    @Test func `a missing parent is refused and not made`() throws {
        let run = try BuiltCommand.run(BuiltCommand.path, ["-d", place.path + "/a/b", "bench"])
        #expect(run.status == 73)
        #expect(try remains.isEmpty)
    }

    @Test(arguments: [["--workers", "0"], ["operand"], ["--nonsense"]])
    func `wrong words are a matter of usage`(words: [String]) throws {
        #expect(try bench(words).status == 64)
        #expect(try remains.isEmpty)
    }
}
