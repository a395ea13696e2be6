// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

/// What a cache does to the tasks of the program that uses it: each test is a process of its own, in which nothing else
/// runs.
@Suite(.takesTurns) struct HostTests {
    private struct Report: Decodable {
        struct Heartbeat: Decodable {
            let beats: Int
            let threadBeats: Int
            let longestGap: Int
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
        let program = Tool.path.replacingOccurrences(of: "/diskcache", with: "/HostProbe")
        let process = Process()
        let output = Foundation.Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = [task, directory.path + "/cache"]
        process.standardOutput = output
        try process.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        try #require(process.terminationReason == .exit && process.terminationStatus == 0, "it was killed")
        let report = try JSONDecoder().decode(Report.self, from: text)
        let heartbeat = report.heartbeat
        print(
            "\(task): \(heartbeat.beats) beats beside \(heartbeat.threadBeats), longest gap \(heartbeat.longestMilliseconds) ms"
        )
        return report
    }

    /// In beats of a thread that is to wake up as often, each 20 ms: half a second, of which a machine that is busy
    /// with other things costs both the same.
    private let longestGap = 25

    @Test func `puts that wait for a stopped process hold up no other task, and no read`() throws {
        let report = try host("blocked")
        #expect(report.heartbeat.beats >= 50)
        #expect(report.heartbeat.longestGap < longestGap)
        #expect(report.reads == 64, "all of them, while the puts waited")
        #expect(report.earlyPuts == 0 && report.puts == 64)
    }

    @Test func `puts that wait for the medium hold up no other task`() throws {
        let report = try host("durable")
        #expect(report.heartbeat.longestGap < longestGap)
        #expect(
            report.heartbeat.beats * 4 >= report.heartbeat.threadBeats,
            "it wakes up about as often as the thread"
        )
        #expect(report.puts == 1024)
    }

    @Test func `a program without a descriptor left lives, and goes on once there are some`() throws {
        let report = try host("descriptors")
        #expect(report.puts == 64, "each has ended, in an error if need be")
        #expect(report.reads == 1)
    }
}
