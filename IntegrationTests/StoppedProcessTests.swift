// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import diskcache

/// A process that is stopped (SIGSTOP, a debugger) while it holds locks must not stop the others.
@Suite(.serialized, .takesTurns)
struct StoppedProcessTests {
    private let place: TemporaryDirectory
    private let cache: SharedCache
    private let values = SelfProvingValues(count: 100, size: 256)

    init() throws {
        place = try TemporaryDirectory()
        cache = try SharedCache(at: place.path + "/cache")
        for index in 0..<values.count {
            try cache.put(values.value(index, version: .initial), forKey: values.key(index))
        }
    }

    /// The lock files that somebody holds, in whatever mode.
    private func heldLocks() throws -> [String] {
        let directory = cache.path + "/locks"
        return try FileManager.default.contentsOfDirectory(atPath: directory).filter { name in
            let number = open(directory + "/" + name, O_RDWR | O_CLOEXEC)
            defer { close(number) }
            return flock(number, LOCK_EX | LOCK_NB) != 0
        }
    }

    /// A process that puts the keys over and over, stopped at an instant when it holds a lock.
    private func stoppedWriter() throws -> (WorkerProcess, [String]) {
        var plan = WorkerPlan(directory: cache.path, task: .put, stream: 1)
        plan.size = 256
        plan.keys = values.count
        plan.seconds = 3600
        let writer = try WorkerProcess(plan, WorkerProgram(executable: BuiltCommand.path))
        while writer.state == .starting { _ = try writer.receive() }
        try writer.begin()
        for attempt in 1... {
            usleep(UInt32.random(in: 1000...5000))
            writer.send(.stop)
            while try state(of: writer) != "T" { usleep(100) }
            let held = try heldLocks()
            if !held.isEmpty { return (writer, held) }
            try #require(attempt < 2000, "a writer must hold locks now and then")
            writer.send(.continue)
        }
        throw CancellationError()
    }

    /// The letter after the name in /proc/PID/stat: "1234 (diskcache) T …".
    private func state(of process: WorkerProcess) throws -> String {
        let text = try String(contentsOfFile: "/proc/\(process.identifier)/stat", encoding: .utf8)
        return text.split(separator: ")").last?.split(separator: " ").first.map(String.init) ?? ""
    }

    @Test
    func `a stopped writer holds up no reader, no writer and no collection`() throws {
        let (writer, held) = try stoppedWriter()
        // What one second of waiting for a lock would show.
        let patience = Duration.milliseconds(900)
        let readingTime = try shortestTime(below: patience) {
            for index in 0..<values.count {
                let hit = try #require(try cache.get(values.key(index)))
                guard case .right = values.check(hit.data, index) else {
                    Issue.record("a wrong value of key \(index)")
                    return
                }
            }
        }
        #expect(readingTime < patience)
        let writingTime = try shortestTime(below: patience) {
            for index in 0..<values.count {
                try cache.put(values.value(index, version: .recurring(1)), forKey: values.key(index))
            }
        }
        #expect(writingTime < patience, "writers share their locks")
        let report = try cache.collectGarbage()
        let objectLocks = held.filter { $0.hasPrefix("object-") }
        #expect(report.skippedStripes.count == objectLocks.count)

        writer.send(.kill)
        #expect(try writer.end() == .killed(.kill))
        let after = try cache.collectGarbage()
        #expect(after.skippedStripes.isEmpty)
        try DirectoryAudit(of: cache.path).expectNoLeftovers(cache)
    }

    /// Holds a lock file shared, as a stopped writer does, until it is killed.
    private func holder(of lock: String) throws -> ChildProcess {
        let path = cache.path + "/locks/" + lock
        let holder = try ChildProcess(
            starting: "/usr/bin/flock",
            ["--shared", "--no-fork", path, "sh", "-c", "echo held; exec sleep 1000"]
        )
        #expect(try holder.output.readAvailable() == Array("held\n".utf8))
        return holder
    }

    @Test
    func `expired entries under a held lock cost a collection one wait, not one each`() throws {
        // Keys whose digests begin with the six bits of stripe 0.
        let keys = (0...).lazy.map { "expiring \($0)" }.filter { key in
            ContentDigest(of: Data(key.utf8)).description.utf8.prefix(2).elementsEqual("00".utf8)
        }.prefix(60)
        for key in keys { try cache.put("x", forKey: key, expires: .seconds(0.001)) }
        usleep(10_000)
        let holder = try holder(of: "entry-00")
        var report: GCReport?
        let time = try ContinuousClock().measure { report = try cache.collectGarbage() }
        #expect(time < .seconds(30), "sixty entries must not take sixty seconds")
        #expect(report?.skippedStripes == ["entry-00"])
        #expect(report?.removed[.expired] == nil)
        holder.send(Signal.kill)
    }

    @Test
    func `a held object lock is reported, and its unreferenced objects stay until it is free`() throws {
        let old = Set(try DirectoryAudit(of: cache.path).objects)
        for index in 0..<values.count {
            try cache.put(values.value(index, version: .recurring(1)), forKey: values.key(index))
        }
        let stripe = try #require(old.first.flatMap { UInt8($0.prefix(2), radix: 16) }) >> 2
        let digits = String(stripe, radix: 16)
        let lock = "object-" + (digits.count < 2 ? "0" : "") + digits
        let holder = try holder(of: lock)
        let report = try cache.collectGarbage()
        #expect(report.skippedStripes == [lock])
        let left = try DirectoryAudit(of: cache.path).objects.intersection(old)
        #expect(!left.isEmpty)
        #expect(left.allSatisfy { UInt8($0.prefix(2), radix: 16)! >> 2 == stripe })

        var ended = holder
        ended.send(Signal.kill)
        _ = try ended.wait()
        try cache.collectGarbage()
        try DirectoryAudit(of: cache.path).expectNoLeftovers(cache)
    }
}
