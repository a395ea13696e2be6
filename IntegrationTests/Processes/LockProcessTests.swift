// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

/// Tests of locks and semaphores whose processes are killed while they hold them or wait for them.
@Suite(.takesTurns) struct LockProcessTests {
    private let place: TemporaryDirectory
    private let cache: SharedCache

    init() throws {
        place = try TemporaryDirectory()
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        cache = try SharedCache(at: place.path + "/cache", configuration: configuration)
        let inside = place.path + "/inside"
        try FileManager.default.createDirectory(atPath: inside, withIntermediateDirectories: false)
    }

    /// A process of `Probes lock`, which is killed when this object is released.
    private final class Probe {
        var process: ChildProcess

        init(_ arguments: [String]) throws {
            process = try ChildProcess(starting: BuiltCommand.probes, ["lock"] + arguments)
        }
    }

    /// Returns a process that holds the lock until it is killed.
    private func holder() throws -> Probe {
        let probe = try Probe([cache.path, "name", "1", "-"])
        #expect(try probe.process.output.readAvailable() == Array("held\n".utf8))
        return probe
    }

    private func worker(_ permits: Int) throws -> Probe {
        try Probe([cache.path, "name", "\(permits)", place.path])
    }

    private func kill(_ probe: Probe) throws {
        probe.process.send(.kill)
        let end = try probe.process.wait()
        #expect(end == .killed(.kill))
    }

    /// The number of times that the lock was held so far.
    private var turns: Int { FileManager.default.contents(atPath: place.path + "/turns")?.count ?? 0 }

    private var faults: String {
        let contents = FileManager.default.contents(atPath: place.path + "/faults")
        return String(decoding: contents ?? Data(), as: UTF8.self)
    }

    // MARK: One holder

    @Test func `a waiter gets the lock of a killed process within 50 ms`() throws {
        let cache = cache
        var shortest = hangLimit
        for _ in 0..<20 where shortest >= .milliseconds(50) {
            let holder = try holder()
            let error = #expect(throws: CacheError.self) { _ = try cache.lock("name", within: .zero) }
            #expect(error?.message.contains("process \(holder.process.identifier) holds it") == true)
            let had = Locked<ContinuousClock.Instant?>.Box(nil)
            // After 50 ms the pauses of the waiter have their maximum length.
            let goesOn = expectBlocks {
                let lock = try? cache.lock("name")
                let now = ContinuousClock.now
                if lock != nil { had.value.withLock { $0 = now } }
                lock?.unlock()
            }
            let killed = ContinuousClock.now
            holder.process.send(.kill)
            goesOn()
            shortest = min(shortest, try #require(had.value.withLock { $0 }) - killed)
        }
        #expect(shortest < .milliseconds(50))
    }

    @Test func `a waiting task gets the lock of a killed process within 50 ms`() async throws {
        var shortest = hangLimit
        for _ in 0..<20 where shortest >= .milliseconds(50) {
            let holder = try holder()
            let task = Task { [cache] in
                try await cache.lock("name").whileHeld { ContinuousClock.now }
            }
            // Whether the pauses are long by then only decides how much the test shows.
            try await Task.sleep(for: .milliseconds(60))
            let killed = ContinuousClock.now
            holder.process.send(.kill)
            shortest = min(shortest, try await task.value - killed)
        }
        #expect(shortest < .milliseconds(50))
    }

    @Test func `a killed holder leaves one file, which the next collection removes`() throws {
        let holder = try holder()
        #expect(try cache.directory.collect().isComplete)
        #expect(lockFiles.count == 1, "it is held")
        try kill(holder)
        #expect(lockFiles.count == 1)
        #expect(try cache.directory.collect().isComplete)
        #expect(lockFiles.isEmpty)
        try cache.lock("name", within: .zero).unlock()
    }

    private var lockFiles: [String] {
        place.files(below: "cache/locks").filter { $0.hasPrefix("lock-") }
    }

    @Test func `a stopped holder keeps the lock, and blocks neither reads nor writes`() throws {
        let holder = try holder()
        holder.process.send(.stop)
        waitUntil("it is stopped") { (try? processState(holder.process.identifier)) == "T" }
        #expect(throws: CacheError.self) { _ = try cache.lock("name", within: .milliseconds(30)) }
        try cache.put("value", forKey: "name")
        #expect(try cache.get(forKey: "name")?.value == Data("value".utf8))
        #expect(try cache.directory.collect().isComplete)
    }

    // MARK: Semaphores

    private var kills: Int { isSoak ? 400 : 40 }

    @Test(arguments: [1, 3])
    func `eight processes that are killed repeatedly never hold more permits than there are`(
        permits: Int
    ) throws {
        var workers = try (0..<8).map { _ in try worker(permits) }
        for number in 0..<kills {
            let before = turns
            waitUntil("somebody gets on") { turns >= before + 3 }
            try kill(workers[number % workers.count])
            workers[number % workers.count] = try worker(permits)
        }
        makeFile(place.path + "/stop")
        for worker in workers {
            let end = try worker.process.wait()
            #expect(end == .exited(0))
        }
        #expect(faults == "", "who was inside beside too many others")
        #expect(turns > kills)
        // The kills have lost no permit, either.
        let locks = try (0..<permits).map { _ in
            try cache.lock("name", permits: permits, within: .zero)
        }
        #expect(throws: CacheError.self) { _ = try cache.lock("name", permits: permits, within: .zero) }
        for lock in locks { lock.unlock() }
        #expect(try cache.directory.collect().isComplete)
        #expect(lockFiles.isEmpty)
    }
}
