// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct BenchPlanTests {
    private func plan(_ words: [String]) throws -> BenchPlan {
        var arguments = try BenchCommand.parse(words.map { Array($0.utf8) }, directory: nil)
        try BenchCommand.check(&arguments)
        return try BenchPlan(arguments)
    }

    private func plan(_ words: String...) throws -> BenchPlan {
        try plan(words)
    }

    private func refusal(_ words: String...) -> String? {
        do {
            _ = try plan(words)
        } catch {
            return (error as? Failure)?.message
        }
        return nil
    }

    @Test
    func `the defaults are four workers on a mixed load for five seconds`() throws {
        let plan = try plan()
        #expect(plan.workers == 4 && plan.puts == 10 && plan.removals == 0 && plan.seconds == 5)
        #expect(plan.size == 4096 && plan.keys == 1000 && plan.repeats == 0)
        #expect(plan.operations == nil && plan.killSeconds == nil && !plan.isCollecting)
    }

    @Test
    func `every option is reflected in the plan`() throws {
        let plan = try plan(
            "--workers",
            "8",
            "--operations=200",
            "--size",
            "1K",
            "--keys",
            "50",
            "--puts",
            "30",
            "--removals",
            "70",
            "--repeat",
            "25",
            "--gc",
            "--kill",
            "50ms"
        )
        #expect(plan.workers == 8 && plan.operations == 200)
        #expect(plan.size == 1024 && plan.keys == 50 && plan.puts == 30 && plan.removals == 70)
        #expect(plan.repeats == 25 && plan.isCollecting && plan.killSeconds == 0.05)
    }

    @Test
    func `the common options have short forms`() throws {
        let plan = try plan("-w2", "-s", "500ms")
        #expect(plan.workers == 2 && plan.seconds == 0.5)
    }

    @Test(arguments: [
        ["--workers", "0"], ["--workers", "257"], ["--workers", "many"], ["--keys", "0"], ["--seconds", "0"],
        ["--operations", "0"], ["--size", "63"], ["--size", "4K,64K"], ["--size", "2G"],
        ["--puts", "101"], ["--removals", "91"], ["--repeat", "101"], ["--kill", "0"],
        ["--seconds", "1", "--operations", "1"],
    ])
    func `values out of range and conflicting options are usage errors`(words: [String]) {
        #expect {
            _ = try plan(words)
        } throws: { error in
            (error as? Failure)?.status == .usage
        }
    }

    @Test
    func `an error names the option and the valid range`() {
        #expect(refusal("--size", "12") == "bench: --size: 12 is out of range: give 64 to 1G")
        #expect(refusal("--workers", "0") == "bench: --workers: 0 is out of range: give 1 to 256")
    }

    @Test
    func `a worker's plan survives the round trip through a command line`() throws {
        var plan = BenchPlan()
        plan.puts = 30
        plan.operations = 12
        let words = try BenchWorkerCommand.words(plan, stream: 7)
        #expect(words.count == 3 && words[0] == BenchWorkerCommand.name && words[2] == "7")
        let decoded = try JSONDecoder().decode(BenchPlan.self, from: Data(words[1].utf8))
        #expect(decoded.puts == 30 && decoded.operations == 12 && decoded.killSeconds == nil)
    }

    @Test
    func `reports of several workers are summed`() throws {
        var report = BenchReport()
        report.counts.wrong = 5
        report.gets.record(nanoseconds: 100)
        report.counts.problems = ["k: x"]
        let decoded = try JSONDecoder().decode(BenchReport.self, from: Data(JSON.line(report).utf8))
        #expect(decoded == report)
        report.merge(decoded)
        #expect(report.operations == 2 && report.counts.wrong == 10 && report.counts.problems.count == 2)
    }
}

@Suite(.takesTurns) struct BenchResultTests {
    private func result(wrong: Int = 0, failures: Int = 0, crashes: [String] = []) throws -> BenchResult {
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        var report = BenchReport()
        report.counts.wrong = wrong
        report.counts.failures = failures
        for _ in 0..<12345 { report.gets.record(nanoseconds: 1000) }
        report.puts.record(nanoseconds: 1000)
        let leftovers = try BenchLeftovers(in: cache)
        return BenchResult(
            plan: BenchPlan(),
            report: report,
            seconds: 1,
            kills: 0,
            crashes: crashes,
            leftovers: leftovers
        )
    }

    @Test
    func `the exit status distinguishes wrong values, crashes and failed calls`() throws {
        #expect(try result().status == .done)
        #expect(try result(failures: 1).status == .inputOutput)
        #expect(try result(failures: 1, crashes: ["worker 1"]).status == .internal)
        #expect(try result(wrong: 1, crashes: ["worker 1"]).status == .dataError)
    }

    @Test
    func `the text has a row for gets and one for puts, in columns`() throws {
        let lines = try result(wrong: 1, crashes: ["a worker"]).text.split(separator: "\n")
        #expect(lines[0].hasPrefix("4 processes, 1 000 keys, values of 4.0 KiB: 12 346 operations/s"))
        #expect(Set(lines[1...3].map(\.count)).count == 1)
        #expect(lines[2].contains("12 345") && lines[4].contains("wrong 1, "))
        #expect(lines.last == "crashed: a worker")
    }
}

@Suite(.takesTurns) struct BenchDirectoryTests {
    @Test
    func `the directory is created inside a plain directory and next to a cache or a missing path`() throws {
        let place = NSTemporaryDirectory() + "bench-directory-\(UUID())"
        #expect(BenchDirectory.base(near: place + "/cache") == place)
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: place) }
        #expect(BenchDirectory.base(near: place) == place)
        #expect(FileManager.default.createFile(atPath: place + "/format", contents: nil))
        #expect(BenchDirectory.base(near: place) == (place as NSString).deletingLastPathComponent)
        #expect(BenchDirectory.base(near: "cache") == ".")
        #expect(BenchDirectory.base(near: "/cache") == "/")
    }

    @Test
    func `each benchmark directory is new, and remove deletes it`() throws {
        let one = try BenchDirectory(near: NSTemporaryDirectory())
        let other = try BenchDirectory(near: NSTemporaryDirectory())
        #expect(one.path != other.path)
        #expect(FileManager.default.fileExists(atPath: one.path))
        try one.remove()
        try other.remove()
        #expect(!FileManager.default.fileExists(atPath: one.path))
    }
}
