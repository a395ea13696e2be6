// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

private let hasServers =
    RemoteServerProcess.Kind.nginx.program != nil && RemoteServerProcess.Kind.redis.program != nil

/// Two machines of four processes each, whose servers, processes and files are disturbed all the time.
///
/// 20,000 gets; with `DISKCACHE_SOAK`, 1,000,000.
@Suite(.takesTurns, .enabled(if: hasServers, "nginx or redis-server is not installed"))
struct RemoteChaosTests {
    private static let gets = isSoak ? 1_000_000 : 20_000

    /// A disturbance of the servers, the processes or the files.
    private enum Disturbance: CaseIterable {
        case killNear, stopNear, killFar, stopFar
        /// Copies the files of nginx; puts the copy in place of the files.
        case saveFar, restoreFar
        /// Every request to nginx is answered with this status.
        case agreeFar, denyFar
        case killWorker
        /// Deletes a file of one of the directories.
        case loseControl, loseOutbox, loseVersions
    }

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test
    func
        `no disturbance makes a get fail, or returns a wrong value or one that the machine has replaced`()
        throws
    {
        var random = SystemRandomNumberGenerator()
        let (near, far) = (try RemoteServerProcess(.redis), try RemoteServerProcess(.nginx))
        let gate = try ServerGate(to: far.port)
        let monitor = try RemoteMonitor(in: directory.path, machine: 0, gets: Self.gets)
        let urls = [near.url, "http://127.0.0.1:\(gate.port)"]
        let workers = Workers(in: directory.path, gets: Self.gets, urls)
        for index in 0..<Workers.count { try workers.start(index) }
        let copy = "\(directory.path)/copy"
        func progress(_ amount: Int) {
            let end = monitor[.gets] + amount
            waitUntil("the gets go on") { monitor[.gets] >= min(end, Self.gets) || workers.hasFailure }
        }
        var disturbances = 0
        while monitor[.gets] < Self.gets, !workers.hasFailure {
            progress(Int.random(in: 50..<500, using: &random))
            let machine = Int.random(in: 0..<2, using: &random)
            disturbances += 1
            switch Disturbance.allCases.randomElement(using: &random) ?? .killNear {
            case .killNear:
                near.end()
                progress(300)
                try near.start()
            case .stopNear:
                near.pause()
                progress(100)
                near.goOn()
            case .killFar:
                far.end()
                progress(300)
                try far.start()
            case .stopFar:
                far.pause()
                progress(100)
                far.goOn()
            case .saveFar:
                try? FileManager.default.removeItem(atPath: copy)
                // Files that nginx renames meanwhile may be missing in the copy.
                _ = try BuiltCommand.run("/bin/cp", ["-a", far.directory.path + "/data", copy])
            case .restoreFar:
                guard access(copy, F_OK) == 0 else { continue }
                far.end()
                try FileManager.default.removeItem(atPath: far.directory.path + "/data")
                try FileManager.default.copyItem(atPath: copy, toPath: far.directory.path + "/data")
                try far.start()
            case .agreeFar, .denyFar:
                gate.answer("HTTP/1.1 \(Bool.random(using: &random) ? "200 OK" : "401 Unauthorized")")
                progress(300)
                gate.answer(nil)
            case .killWorker: try workers.restart(Int.random(in: 0..<Workers.count, using: &random))
            case .loseControl:
                // This file must not be deleted while processes use it.
                workers.kill(onMachine: machine)
                unlink("\(directory.path)/\(machine)/control")
                try workers.startMissing()
            case .loseOutbox: unlink("\(directory.path)/\(machine)/outbox")
            case .loseVersions: unlink("\(directory.path)/\(machine)/versions")
            }
        }
        #expect(!workers.hasFailure, "a process has ended")
        workers.wait()
        let counts = RemoteMonitor.Count.allCases.map { "\($0): \(monitor[$0])" }.joined(separator: ", ")
        print("\(disturbances) disturbances; \(counts)")
        #expect(monitor[.failures] == 0)
        #expect(monitor[.wrong] == 0)
        #expect(monitor[.returned] == 0)
        #expect(monitor[.remoteHits] > 0 && monitor[.hits] > 0)
    }
}

/// The processes of both machines; the second machine's clock is five minutes ahead.
private final class Workers {
    static let count = 8
    private let arguments: (Int) -> [String]
    private var processes: [Process?] = .init(repeating: nil, count: count)

    init(in directory: String, gets: Int, _ urls: [String]) {
        arguments = { index in
            let machine = index % 2
            return ["remoteLoad", directory, "\(machine)", machine == 0 ? "0" : "300", "\(gets)"] + urls
        }
    }

    deinit {
        for process in processes { process?.terminate() }
    }

    func start(_ index: Int) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: BuiltCommand.probes)
        process.arguments = arguments(index)
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        processes[index] = process
    }

    func restart(_ index: Int) throws {
        end(index)
        try start(index)
    }

    private func end(_ index: Int) {
        guard let process = processes[index] else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        processes[index] = nil
    }

    func kill(onMachine machine: Int) {
        for index in processes.indices where index % 2 == machine { end(index) }
    }

    func startMissing() throws {
        for index in processes.indices where processes[index] == nil { try start(index) }
    }

    /// Whether a process has ended with an error.
    var hasFailure: Bool {
        processes.contains { $0.map { !$0.isRunning && $0.terminationStatus != 0 } ?? false }
    }

    /// Waits for all processes, which end by themselves.
    func wait() {
        for process in processes { process?.waitUntilExit() }
        processes = []
    }
}
