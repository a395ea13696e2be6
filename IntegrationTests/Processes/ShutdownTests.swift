// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

/// Tests of real processes that are terminated or killed.
@Suite(.serialized, .takesTurns)
struct ShutdownTests {
    private let place: TemporaryDirectory
    private let path: String

    init() throws {
        place = try TemporaryDirectory()
        path = place.path + "/cache"
    }

    /// Starts a process that has the cache open.
    private func worker(interval: Double = 3600, deadline: Double = 5, _ prefix: String...) throws -> Worker {
        try Worker(prefix + [BuiltCommand.probes, "shutdown", path, "\(interval)", "\(deadline)"])
    }

    private final class Worker {
        private var child: ChildProcess
        var identifier: Int32 { child.identifier }

        init(_ words: [String]) throws {
            child = try ChildProcess(starting: words[0], Array(words.dropFirst()))
            let ready = try child.output.readAvailable()
            try #require(String(decoding: ready, as: UTF8.self) == "ready\n")
        }

        func send(_ signal: Signal) { child.send(signal) }

        /// Sends a signal, and returns how the process ended and how long that took.
        func end(by signal: Signal) throws -> (ChildProcess.End, Duration) {
            let start = ContinuousClock.now
            child.send(signal)
            let end = try child.wait()
            return (end, ContinuousClock.now - start)
        }
    }

    /// Stores expired entries with a cache that takes no part in sessions and sweeps.
    private func storeExpired(_ count: Int) throws {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.janitor.joinsSession = false
        let cache = try SharedCache(at: path, configuration: configuration)
        for index in 0..<count {
            try cache.put(
                Data("value \(index)".utf8),
                forKey: "key \(index)",
                options: PutOptions(expires: .expired)
            )
        }
    }

    private var entries: Int { place.files(below: "cache/entries").count }

    @Test
    func `the last of four workers removes expired entries, and the others end at once`() throws {
        try storeExpired(2000)
        let workers = try (0..<4).map { _ in try worker() }
        for worker in workers.dropLast() {
            let (end, time) = try worker.end(by: .terminate)
            print("not the last: \(time)")
            #expect(end == .killed(.terminate), "the parent sees what ended it")
        }
        #expect(entries == 2000)
        let (end, time) = try workers[3].end(by: .terminate)
        print("the last, 2000 expired entries: \(time)")
        #expect(end == .killed(.terminate))
        #expect(entries == 0 && place.files(below: "cache/objects").isEmpty)
    }

    @Test
    func `the last worker keeps its deadline, and the next one continues the sweep`() throws {
        // How much a process completes in 20 ms depends on the machine: if it deletes nothing, the next attempt has twice
        // the time, and if it deletes everything, twice the entries.
        var (count, deadline, left) = (1500, 0.02, 0)
        for _ in 0..<4 where !(1..<count).contains(left) {
            if left == count { deadline *= 2 } else if left == 0 { count *= 2 }
            try storeExpired(count)
            let (end, time) = try worker(deadline: deadline).end(by: .interrupt)
            left = entries
            print("the last, with \(deadline) s for \(count) entries: \(time), left \(left)")
            #expect(end == .killed(.interrupt))
        }
        #expect((1..<count).contains(left))
        let store = try Store(at: path)
        #expect(SweepRecord.last(in: store.directory)?.isUnfinished == true)
        // The next worker continues in its first round, not after an interval of an hour.
        let next = try worker()
        waitUntil("they are removed") { entries == 0 }
        _ = try next.end(by: .terminate)
    }

    @Test
    func `a second signal ends a closing process at once`() throws {
        try storeExpired(6000)
        let worker = try worker(deadline: 60)
        worker.send(.terminate)
        let store = try Store(at: path)
        waitUntil("it sweeps") { SweepRecord.last(in: store.directory).map { $0.ended == nil } ?? false }
        let (end, _) = try worker.end(by: .interrupt)
        #expect(end == .killed(.interrupt))
        #expect(entries > 0, "it did not go on to the end")
    }

    @Test
    func `a signal that the process was started to ignore stays ignored`() throws {
        let worker = try worker(
            interval: 3600,
            deadline: 5,
            "/bin/sh",
            "-c",
            "trap '' INT; exec \"$@\"",
            "sh"
        )
        worker.send(.interrupt)
        usleep(300_000)
        let (end, _) = try worker.end(by: .terminate)
        #expect(end == .killed(.terminate))
    }

    @Test
    func `a killed worker is no longer counted`() throws {
        try storeExpired(10)
        let (killed, other) = (try worker(), try worker())
        _ = try killed.end(by: .kill)
        _ = try other.end(by: .terminate)
        #expect(entries == 0)
    }

    @Test
    func `another worker takes over at once when the sweeping one is killed`() throws {
        // The entries come first: a sweep that ended while they are stored would postpone the next one by fifty times its
        // working time.
        try storeExpired(2000)
        let workers = try (0..<3).map { _ in try worker(interval: 1) }
        let store = try Store(at: path)
        // A sweep of this many entries takes seconds, with its pauses, so that it can be caught in the middle.
        waitUntil("one is in the middle of a sweep") {
            guard let last = SweepRecord.last(in: store.directory), last.ended == nil else { return false }
            return entries < 2000
        }
        let swept = try #require(SweepRecord.last(in: store.directory))
        let elected = try #require(workers.first { $0.identifier == swept.process })
        elected.send(.stop)
        usleep(1_500_000)
        #expect(SweepRecord.last(in: store.directory) == swept, "who is stopped still holds the lock")
        #expect(entries > 0)
        let start = ContinuousClock.now
        _ = try elected.end(by: .kill)
        waitUntil("another sweeps") { SweepRecord.last(in: store.directory)?.process != swept.process }
        print("taken over after \(ContinuousClock.now - start)")
        for worker in workers where worker.identifier != swept.process {
            _ = try worker.end(by: .terminate)
        }
    }
}
