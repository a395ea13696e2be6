// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import diskcache

/// Serialized: the scanner keeps its state in globals, as getopt does.
@Suite(.serialized, .takesTurns)
struct BenchPlanTests {
    private func plan(_ words: String...) throws -> BenchPlan {
        let options = BenchCommand.options + Option.common
        let scanned = try OptionScanner.scan(words, options.map(\.specification), stopsAtOperand: false)
        return try BenchPlan(Arguments(scanned, options: options, command: "bench", directory: nil))
    }

    private func refusal(_ words: String...) -> String? {
        do {
            let options = BenchCommand.options + Option.common
            let scanned = try OptionScanner.scan(words, options.map(\.specification), stopsAtOperand: false)
            _ = try BenchPlan(Arguments(scanned, options: options, command: "bench", directory: nil))
            return nil
        } catch let failure as Failure {
            return failure.status == .usage ? failure.message : nil
        } catch {
            return nil
        }
    }

    @Test
    func `the defaults are four workers, three workloads, two sizes, fifteen seconds`() throws {
        let plan = try plan()
        #expect(plan.workers == 4)
        #expect(plan.workloads == [.put, .get, .mixed])
        #expect(plan.sizes == [4096, 65536])
        let cells = Double(plan.workloads.count * plan.sizes.count)
        #expect(try #require(plan.seconds) * cells == 15)
        #expect(plan.keys == 1000 && plan.operations == nil && plan.killInterval == nil)
        #expect(!plan.isCollecting && !plan.isKept)
    }

    @Test
    func `every option arrives`() throws {
        let plan = try plan(
            "--workers",
            "8",
            "--operations=200",
            "--sizes",
            "1K,1M",
            "--keys",
            "50",
            "--workload",
            "mixed,put",
            "--seed",
            "7",
            "--repeat",
            "25",
            "--gc",
            "--kill",
            "50ms",
            "--keep"
        )
        #expect(plan.workers == 8 && plan.operations == 200 && plan.seconds == nil)
        #expect(plan.sizes == [1024, 1 << 20] && plan.keys == 50)
        #expect(plan.workloads == [.mixed, .put] && plan.seed == 7 && plan.repeatPercent == 25)
        #expect(plan.isCollecting && plan.isKept && plan.killInterval == .milliseconds(50))
    }

    @Test
    func `letters stand for the common options`() throws {
        let plan = try plan("-w2", "-s", "500ms", "-k")
        #expect(plan.workers == 2 && plan.seconds == 0.5 && plan.isKept)
    }

    @Test(arguments: [
        ["--workers", "0"], ["--workers", "257"], ["--workers", "many"], ["--keys", "0"], ["--seconds", "0"],
        ["--operations", "0"],
        ["--sizes", "63"], ["--sizes", "4K,"], ["--sizes", "2G"], ["--workload", "collect"],
        ["--workload", "get,,put"], ["--repeat", "101"], ["--kill", "0"], ["--seed", "-1"],
        ["--seconds", "1", "--operations", "1"], ["--corpus", "x", "--keys", "3"],
    ])
    func `what makes no sense is refused as a matter of usage`(words: [String]) {
        let options = BenchCommand.options + Option.common
        #expect {
            let scanned = try OptionScanner.scan(words, options.map(\.specification), stopsAtOperand: false)
            _ = try BenchPlan(Arguments(scanned, options: options, command: "bench", directory: nil))
        } throws: { error in
            (error as? Failure)?.status == .usage
        }
    }

    @Test
    func `a refusal names the option and what would be right`() {
        #expect(
            refusal("--sizes", "12") == "bench: --sizes: 12: a value has at least 64 bytes and at most 1G"
        )
    }

    @Test
    func `a worker's plan survives its way through a command line`() throws {
        var plan = WorkerPlan(directory: "/tmp/a b", task: .mixed, stream: 7)
        plan.operations = 12
        plan.corpus = "/x"
        let decoded = try JSONDecoder().decode(WorkerPlan.self, from: Data(try plan.argument.utf8))
        #expect(decoded.directory == plan.directory && decoded.task == .mixed && decoded.stream == 7)
        #expect(decoded.operations == 12 && decoded.seconds == nil && decoded.corpus == "/x")
        #expect(decoded.maximumBytes == .max)
    }

    @Test
    func `the line of a message is read back, and half a line is no message`() throws {
        var report = WorkerReport()
        report.hits = 5
        report.gets.record(nanoseconds: 100)
        for message in [WorkerMessage.ready, .report(report), .wrongValue("k: x"), .finished(report)] {
            let line = try message.line
            #expect(line.hasSuffix("\n") && line.filter { $0 == "\n" }.count == 1)
            #expect(WorkerMessage(line: Array(line.utf8)) == message)
            #expect(WorkerMessage(line: Array(line.utf8.dropLast(5))) == nil)
        }
    }
}

@Suite(.takesTurns) struct BenchResultTests {
    private func row(wrong: Int = 0, failures: Int = 0) -> BenchRow {
        var result = CrewResult()
        result.report.wrong = wrong
        result.report.failures = failures
        result.elapsed = .seconds(1)
        return BenchRow(result, workload: .mixed, valueBytes: 4096, workers: 4)
    }

    @Test
    func `the exit status tells wrong values from crashes and failed calls`() {
        var result = BenchResult(directory: "/x", rows: [row()])
        #expect(result.status == .done)
        result.rows = [row(), row(failures: 1)]
        #expect(result.status == .inputOutput)
        result.crashes = ["worker 1"]
        #expect(result.status == .internal)
        result.rows = [row(wrong: 1)]
        #expect(result.status == .dataError)
    }

    @Test
    func `a wrong value that only a line told of counts`() {
        var result = CrewResult()
        result.wrongValues = ["a", "b"]
        #expect(result.wrong == 2)
    }

    @Test
    func `the table has a row for each workload, in columns`() {
        let text = BenchTable.text(BenchResult(directory: "/x", rows: [row(), row(wrong: 12345)]))
        let lines = text.split(separator: "\n")
        #expect(lines.count == 3)
        #expect(Set(lines.map(\.count)).count == 1)
        #expect(lines[2].contains("12 345"))
    }
}

@Suite(.takesTurns) struct BenchDirectoryTests {
    @Test
    func `the directory is inside a plain one and beside a cache or nothing`() throws {
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
    func `it is fresh each time and goes when it is removed`() throws {
        let one = try BenchDirectory(near: NSTemporaryDirectory())
        let other = try BenchDirectory(near: NSTemporaryDirectory())
        #expect(one.path != other.path)
        #expect(FileManager.default.fileExists(atPath: one.path))
        try one.remove()
        try other.remove()
        #expect(!FileManager.default.fileExists(atPath: one.path))
    }
}
