// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

/// Tests of the effect of a cache on the tasks of its program, each in a separate process in which nothing else runs.
@Suite(.takesTurns) struct HostTests {
    private struct Report: Decodable {
        struct Heartbeat: Decodable {
            let beats: Int
            let threadBeats: Int
            let longGaps: Int
            let longestMilliseconds: Double
        }
        let heartbeat: Heartbeat
        let earlyPuts: Int
        let reads: Int
        let puts: Int
    }

    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func host(_ task: String) throws -> Report {
        let run = try HostRun(task, in: directory)
        try #require(run.end == .exited(0), "\(run.errors)")
        let report = try JSONDecoder().decode(Report.self, from: run.output)
        let heartbeat = report.heartbeat
        print(
            "\(task): \(heartbeat.beats) beats beside \(heartbeat.threadBeats), longest gap \(heartbeat.longestMilliseconds) ms"
        )
        return report
    }

    /// Returns whether the task was delayed for long again and again.
    ///
    /// A blocking call delays the task all the time, a busy machine only now and then.
    private func isHeldUp(_ heartbeat: Report.Heartbeat) -> Bool {
        heartbeat.longGaps * 4 > heartbeat.beats
    }

    @Test func `puts that wait for a stopped process block no other task and no read`() throws {
        let report = try host("blocked")
        #expect(report.heartbeat.beats >= 50)
        #expect(!isHeldUp(report.heartbeat))
        #expect(report.reads == 64, "all of them, while the puts waited")
        #expect(report.earlyPuts == 0 && report.puts == 64)
    }

    @Test func `puts that wait for the storage device block no other task`() throws {
        let report = try host("durable")
        #expect(!isHeldUp(report.heartbeat), "a fast medium is done before there can be such a gap")
        #expect(
            report.heartbeat.beats * 4 >= report.heartbeat.threadBeats,
            "it wakes up about as often as the thread"
        )
        #expect(report.puts == 1024)
    }

    @Test func `a program without free descriptors survives, and continues once there are some`() throws {
        let report = try host("descriptors")
        #expect(report.puts == 64, "each has ended, in an error if need be")
        #expect(report.reads == 1)
    }

    @Test func `a cache at a relative path stays in place if the process changes its working directory`()
        throws
    {
        #expect(try host("chdir").reads == 3)
        #expect(!FileManager.default.fileExists(atPath: "\(directory.path)/cache/elsewhere/relative"))
    }

    @Test func `a crash in a closure of the program, on a library thread, reaches the program's handler`()
        throws
    {
        let run = try HostRun("crash", in: directory)
        #expect(run.end == .exited(7), "\(run.errors)")
    }
}

/// A completed process of `Probes host`, which is killed if it hangs.
struct HostRun {
    let end: SpawnedProcess.End
    let output: Data
    let errors: String

    init(_ task: String, in directory: TemporaryDirectory) throws {
        // Files need no reader meanwhile, and processes that are left running can't delay the end of the output.
        let (output, errors) = (directory.path + "/output", directory.path + "/errors")
        makeFile(output)
        makeFile(errors)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: BuiltCommand.probes)
        process.arguments = ["host", task, directory.path + "/cache"]
        process.standardOutput = FileHandle(forWritingAtPath: output)
        process.standardError = FileHandle(forWritingAtPath: errors)
        try process.run()
        waitUntil("\(task) ends") { !process.isRunning }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        let status = process.terminationStatus
        end = process.terminationReason == .exit ? .exited(status) : .killed(Signal(rawValue: status))
        self.output = try Data(contentsOf: URL(fileURLWithPath: output))
        self.errors = try String(contentsOfFile: errors, encoding: .utf8)
    }
}
