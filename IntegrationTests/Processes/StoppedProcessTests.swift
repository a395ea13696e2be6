// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

/// Tests that a process that is stopped (SIGSTOP, a debugger) while it holds locks does not block the others.
@Suite(.serialized, .takesTurns)
struct StoppedProcessTests {
    private let place: TemporaryDirectory
    private let cache: SharedCache
    private let keyCount = 100
    private let values = SelfProvingValues(size: 256)

    init() throws {
        place = try TemporaryDirectory()
        cache = try SharedCache(at: place.path + "/cache")
        for index in 0..<keyCount {
            try cache.put(values.value(index), forKey: values.key(index))
        }
    }

    /// Returns the lock files that any process holds, in any mode.
    private func heldLocks() throws -> [String] {
        let directory = cache.path + "/locks"
        return try FileManager.default.contentsOfDirectory(atPath: directory).filter { name in
            let number = open(directory + "/" + name, O_RDWR | O_CLOEXEC)
            defer { close(number) }
            return flock(number, LOCK_EX | LOCK_NB) != 0
        }
    }

    /// A process that puts the keys repeatedly, and is stopped while it holds locks.
    private final class StoppedWriter {
        var process: ChildProcess
        private(set) var held: [String] = []

        init(_ plan: BenchPlan, on directory: String, heldLocks: () throws -> [String]) throws {
            process = try ChildProcess(
                starting: BuiltCommand.path,
                ["--dir", directory] + BenchWorkerCommand.words(plan, stream: 1)
            )
            for attempt in 1... {
                // The process is at work once it has reported, and continues only if its output is read.
                if try attempt == 1 || !Readiness.wait(for: [process.output.rawValue], limit: .zero).isEmpty {
                    _ = try process.output.readAvailable()
                }
                usleep(UInt32.random(in: 1000...5000))
                process.send(.stop)
                while try processState(process.identifier) != "T" { usleep(100) }
                held = try heldLocks()
                if !held.isEmpty { return }
                try #require(attempt < 2000, "a writer must hold locks now and then")
                process.send(.continue)
            }
        }
    }

    @Test
    func `a stopped writer blocks no reader, no writer and no collection`() throws {
        var plan = BenchPlan()
        plan.puts = 100
        plan.size = 256
        plan.keys = keyCount
        let writer = try StoppedWriter(plan, on: cache.path, heldLocks: heldLocks)
        // Less than a wait of one second for a lock.
        let patience = Duration.milliseconds(900)
        let readingTime = try shortestTime(below: patience) {
            for index in 0..<keyCount {
                let hit = try #require(try cache.get(forKey: values.key(index)))
                #expect(values.problem(in: hit.value, of: index) == nil)
            }
        }
        #expect(readingTime < patience)
        let writingTime = try shortestTime(below: patience) {
            for index in 0..<keyCount {
                let value = values.value(index, version: SelfProvingValues.recurring(1))
                try cache.put(value, forKey: values.key(index))
            }
        }
        #expect(writingTime < patience, "writers share their locks")
        let report = try cache.directory.collect()
        let objectLocks = writer.held.filter { $0.hasPrefix("object-") }
        // On a busy machine other stripes may be skipped, too, because the collection hardly waits for them then.
        #expect(report.skippedStripes.count >= objectLocks.count)

        writer.process.send(.kill)
        #expect(try writer.process.wait() == .killed(.kill))
        let after = try cache.directory.collect()
        #expect(after.skippedStripes.isEmpty)
        try DirectoryAudit(of: cache.path).expectNoLeftovers(cache)
    }

    // MARK: The table

    /// A call during the stop, with its expectations.
    private struct Call {
        let name: String
        let body: (SharedCache) throws -> Void

        init(_ name: String, _ body: @escaping (SharedCache) throws -> Void) {
            self.name = name
            self.body = body
        }
    }

    private static var calls: [Call] {
        [
            Call("get, same key") { _ = try $0.get(forKey: "key") },
            Call("get, other key") { cache in
                let hit = try cache.get(forKey: "kept")
                #expect(hit != nil)
            },
            Call("put, same key and value") { try $0.put("value", forKey: "key") },
            Call("put, the same again") { try $0.put("value", forKey: "key") },
            Call("put, other key at the limit") { try $0.put("new 1", forKey: "new 1") },
            Call("put, another at the limit") { try $0.put("new 2", forKey: "new 2") },
            Call("putIfAbsent, same key") { _ = try $0.putIfAbsent(Data("other".utf8), forKey: "key") },
            Call("update, same key") { cache in
                try cache.update(forKey: "key") { _ in .value(Data("updated".utf8)) }
            },
            Call("touch, same key") { _ = try $0.touch(forKey: "key") },
            Call("remove, same key") { _ = try $0.remove(forKey: "key") },
            Call("value(forKey:), waitLimit") { cache in
                var options = ReadOptions()
                options.waitLimit = .milliseconds(500)
                let value = cache.value(forKey: "key", reading: options) { Data("value".utf8) }
                #expect(value == Data("value".utf8))
            },
            Call("value(forKey:), other key") { cache in
                let value = cache.value(forKey: "computed") { Data("value".utf8) }
                #expect(value == Data("value".utf8))
            },
            Call("collect") { _ = try $0.directory.collect() },
            Call("collect again") { _ = try $0.directory.collect() },
            Call("statistics") { _ = try $0.directory.statistics() },
            Call("put from a file") { cache in
                makeFile(cache.path + ".value", "value")
                try cache.put(contentsOfFile: cache.path + ".value", forKey: "key")
            },
            Call("setExpiration") { _ = try $0.setExpiration(.days(1), forKey: "key") },
            Call("removeAll") { try $0.removeAll() },
            Call("setLimits") { try $0.directory.updateLimits { _ in } },
            Call("open and close") { cache in
                _ = try SharedCache(at: cache.path).close(deadline: .zero)
            },
        ]
    }

    /// The places where a process is stopped.
    private static let places = [
        "claimed", "written", "objectLocked", "entryLocked", "flight", "sweep", "objectStripe", "entryStripe",
    ]

    /// Returns the time and the outcome of each call while a process is stopped at `place`.
    private func outcomes(
        at place: String,
        in directory: String
    ) throws -> [(time: Duration, outcome: String)] {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.memory = .none
        configuration.roomPatience = .seconds(3600)
        var limits = CacheLimits()
        limits.maximumEntries = 10
        configuration.limits = limits
        let cache = try SharedCache(at: directory, configuration: configuration)
        for index in 0..<9 { try cache.put("\(index)", forKey: "key \(index)") }
        try cache.put("kept", forKey: "kept")
        let process = try stoppedProcess(at: place, in: cache.path)
        let outcomes = try Self.calls.map { call in
            var outcome = ""
            let time = ContinuousClock().measure {
                do {
                    _ = try cache.get(forKey: "kept")
                    try call.body(cache)
                } catch {
                    outcome = (error as? CacheError).map { " \($0.code)" } ?? " \(error)"
                }
            }
            // The process is still stopped, so the call has not waited for it.
            let state = try processState(process.identifier)
            #expect(state == "T")
            return (time, outcome)
        }
        process.send(Signal.continue)
        process.send(Signal.kill)
        return outcomes
    }

    @Test
    func `each call ends in less than a second while another process is stopped`() throws {
        let limit = Duration.seconds(1)
        var table: [(name: String, cells: [String])] = Self.calls.map { ($0.name, []) }
        for place in Self.places {
            var best = Self.calls.map { _ in (time: hangLimit, outcome: "") }
            // The shortest of several attempts counts: only a call that waits takes longer every time.
            for attempt in 0..<10 where best.contains(where: { $0.time >= limit }) {
                let outcomes = try outcomes(at: place, in: "\(self.place.path)/\(place) \(attempt)")
                best = zip(best, outcomes).map { $0.time < $1.time ? $0 : $1 }
            }
            for (index, call) in Self.calls.enumerated() {
                #expect(best[index].time < limit, "\(call.name) while one is stopped: \(place)")
                table[index].cells.append("\(milliseconds(best[index].time))\(best[index].outcome)")
            }
        }
        print("Milliseconds that a call takes while another process is stopped, and what it ends with")
        printTable(table)
    }

    private func milliseconds(_ time: Duration) -> Int { Int(time / .milliseconds(1)) }

    private func printTable(_ table: [(name: String, cells: [String])]) {
        func padded(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        for row in [("", Self.places)] + table.map({ ($0.name, $0.cells) }) {
            print(padded(row.0, 30) + row.1.map { padded($0, 13) }.joined())
        }
    }

    @Test func `a process that blocks evictions is named, and a computed value does not wait`() throws {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        var limits = CacheLimits()
        limits.maximumEntries = 2
        configuration.limits = limits
        let cache = try SharedCache(at: place.path + "/full", configuration: configuration)
        for index in 0..<2 { try cache.put("\(index)", forKey: "key \(index)") }
        let process = try stoppedProcess(at: "sweep", in: cache.path)
        let value = cache.value(forKey: "computed") { Data("value".utf8) }
        #expect(value == Data("value".utf8))
        #expect(cache.directory.activity.roomFailures == 1)
        // The lock of the computation is no longer held.
        let locks = try FileManager.default.contentsOfDirectory(atPath: cache.path + "/locks")
        #expect(!locks.contains { $0.hasPrefix("flight-") })
        for body in [{ try cache.put("x", forKey: "x") }, { _ = try cache.directory.collect() }] {
            let error = #expect(throws: CacheError.self) { try body() }
            #expect(error?.message.contains("process \(process.identifier)") == true)
        }
        let error = #expect(throws: CacheError.self) { try cache.directory.collect() }
        #expect(error?.message.contains("it is stopped") == true)
        process.send(Signal.kill)
    }

    /// Starts a process that holds a lock file shared, as a stopped writer does, until it is killed.
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
            Digest(of: Data(key.utf8)).description.utf8.prefix(2).elementsEqual("00".utf8)
        }.prefix(60)
        for key in keys { try cache.put("x", forKey: key, options: PutOptions(expires: .seconds(0.001))) }
        usleep(10_000)
        let holder = try holder(of: "entry-00")
        var report: CollectionReport?
        let time = try ContinuousClock().measure { report = try cache.directory.collect() }
        #expect(time < .seconds(30), "sixty entries must not take sixty seconds")
        #expect(report?.skippedStripes.contains("entry-00") == true)
        #expect(report?.removed[.expired] == nil)
        holder.send(Signal.kill)
    }

    @Test
    func `a held object lock is reported, and its unreferenced objects stay until it is free`() throws {
        let old = Set(try DirectoryAudit(of: cache.path).objects)
        for index in 0..<keyCount {
            let value = values.value(index, version: SelfProvingValues.recurring(1))
            try cache.put(value, forKey: values.key(index))
        }
        let stripe = try #require(old.first.flatMap { UInt8($0.prefix(2), radix: 16) }) >> 2
        let digits = String(stripe, radix: 16)
        let lock = "object-" + (digits.count < 2 ? "0" : "") + digits
        let holder = try holder(of: lock)
        let report = try cache.directory.collect()
        #expect(report.skippedStripes.contains(lock))
        let left = try DirectoryAudit(of: cache.path).objects.intersection(old)
        #expect(!left.isEmpty)
        #expect(left.allSatisfy { UInt8($0.prefix(2), radix: 16)! >> 2 == stripe })

        var ended = holder
        ended.send(Signal.kill)
        _ = try ended.wait()
        try cache.directory.collect()
        try DirectoryAudit(of: cache.path).expectNoLeftovers(cache)
    }
}
