// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

/// These tests use real threads and real time; bounds are loose for a machine that is busy with other tests.
@Suite(.serialized, .takesTurns)
struct JanitorTests {
    private let place: TemporaryDirectory
    private let path: String

    init() throws {
        place = try TemporaryDirectory()
        path = place.path + "/cache"
    }

    private func open(every interval: Duration = .seconds(3600)) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.interval = interval
        return try SharedCache(at: path, configuration: configuration)
    }

    private var entries: Int { place.files(below: "cache/entries").count }

    private func store(_ count: Int, in cache: SharedCache, expires: Expiration = .expired) throws {
        for index in 0..<count {
            try cache.put(
                Data("value \(index)".utf8),
                forKey: "key \(index)",
                options: PutOptions(expires: expires)
            )
        }
    }

    @Test func `expired entries are removed after the interval while a process runs`() throws {
        let cache = try open(every: .seconds(1))
        try store(10, in: cache, expires: .seconds(1))
        try cache.put(Data("stays".utf8), forKey: "stays")
        waitUntil("it is so soon") { entries == 1 && place.files(below: "cache/objects").count == 1 }
        #expect(try cache.get(forKey: "stays") != nil)
    }

    @Test func `one janitor sweeps for all processes, and the interval applies to all of them`() throws {
        let caches = try (0..<4).map { _ in try open(every: .seconds(1)) }
        let store = try Store(at: path)
        var begins: Set<Int64> = []
        waitUntil("they sweep four times") {
            if let last = SweepRecord.last(in: store.directory) { begins.insert(last.began.nanoseconds) }
            return begins.count >= 4
        }
        let gaps = zip(begins.sorted(), begins.sorted().dropFirst()).map { $1 - $0 }
        #expect(gaps.allSatisfy { $0 >= 1_000_000_000 }, "\(gaps)")
        withExtendedLifetime(caches) {}
    }

    @Test func `a sweep that a killed process has left unfinished is taken over at once`() throws {
        let cache = try open()
        try store(5, in: cache)
        let last = try Store(at: path)
        let lock = try LockFile.acquire(StoreLayout.janitorLock, in: last.directory.locks, patience: .zero)
        guard let lock else { throw CancellationError() }
        SweepRecord(beginning: SweepRequest(), after: nil).write(to: lock.descriptor)
        usleep(2_500_000)
        #expect(entries == 5, "as long as it is alive nobody else sweeps")
        lock.release()
        waitUntil("it is so soon") { entries == 0 }
    }

    @Test func `a replaced directory is detected and reported by an event`() throws {
        let seen = Atomic<Bool>(false)
        var configuration = CacheConfiguration()
        configuration.onEvent = {
            if case .directoryReplaced = $0 { seen.store(true, ordering: .relaxed) }
        }
        let cache = try SharedCache(at: path, configuration: configuration)
        usleep(1_500_000)
        let isEarly = seen.load(ordering: .relaxed)
        #expect(!isEarly)
        try FileManager.default.moveItem(atPath: path, toPath: path + " away")
        _ = try Store(at: path)
        let start = ContinuousClock.now
        waitUntil("it is so soon") { seen.load(ordering: .relaxed) }
        print("replaced directory noticed after \(ContinuousClock.now - start)")
        withExtendedLifetime(cache) {}
    }

    /// Deletes a part of the directory, in which open caches may create files meanwhile.
    private func delete(_ name: String) {
        waitUntil("\(name) is deleted") {
            (try? FileManager.default.removeItem(atPath: path + "/" + name)) != nil
                || !FileManager.default.fileExists(atPath: path + "/" + name)
        }
    }

    /// Waits until the cache is on a current directory; a change detected amid a deletion must be detected again after it.
    private func waitUntilNoticed(_ replaced: borrowing Atomic<Bool>, by cache: SharedCache) throws {
        try waitUntil("it is noticed") {
            let store = cache.core.store
            return try replaced.load(ordering: .relaxed) && store.directory.isCurrent()
                && store.control.isCurrent()
        }
    }

    @Test(arguments: ["everything", "objects", "entries", "locks"])
    func `a deletion inside the directory is detected like a replaced directory`(part: String)
        throws
    {
        var configuration = CacheConfiguration()
        let replaced = Atomic<Bool>(false)
        configuration.onEvent = {
            if case .directoryReplaced = $0 { replaced.store(true, ordering: .relaxed) }
        }
        let cache = try SharedCache(at: path, configuration: configuration)
        try cache.put("old", forKey: "key")
        let all = try FileManager.default.contentsOfDirectory(atPath: path)
        for name in part == "everything" ? all : [part] { delete(name) }
        try waitUntilNoticed(replaced, by: cache)
        // The directory is a new one now, for later caches, too.
        try cache.put("new", forKey: "key")
        let other = try SharedCache(at: path)
        #expect(try other.get(forKey: "key")?.value == Data("new".utf8))
        try other.put("newer", forKey: "key")
        #expect(try cache.get(forKey: "key")?.value == Data("newer".utf8))
        #expect(try cache.directory.verify().isClean)
        #expect(try cache.directory.collect().unreadable.isEmpty)
    }

    @Test func `after a slow deletion a directory with a new control file is a usable cache again`()
        throws
    {
        let replaced = Atomic<Bool>(false)
        var configuration = CacheConfiguration()
        configuration.onEvent = {
            if case .directoryReplaced = $0 { replaced.store(true, ordering: .relaxed) }
        }
        let cache = try SharedCache(at: path, configuration: configuration)
        try cache.put("old", forKey: "key")
        let names = try FileManager.default.contentsOfDirectory(atPath: path)
        try FileManager.default.removeItem(atPath: path + "/control")
        waitUntil("it is made anew") { FileManager.default.fileExists(atPath: path + "/control") }
        for name in names where name != "control" { delete(name) }
        let other = try SharedCache(at: path)
        try waitUntilNoticed(replaced, by: cache)
        try cache.put("new", forKey: "key")
        #expect(try other.get(forKey: "key")?.value == Data("new".utf8))
        #expect(try cache.directory.verify().isClean)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can mount"))
    func `a failed put in a full read-only directory does not keep the janitor busy`() throws {
        let mount = try Mount("tmpfs")
        let path = mount.path + "/cache"
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        do {
            let cache = try SharedCache(at: path, configuration: configuration)
            for number in 0..<4 { try cache.put("value", forKey: "\(number)") }
            try cache.directory.updateLimits { $0.maximumEntries = 1 }
            cache.close()
        }
        try mount.remount("ro")
        let core = try CacheCore(path: path, configuration: CacheConfiguration())
        let janitor = Janitor(core)
        janitor.begin()
        let bytes = Data("more".utf8)
        let record = Record(content: Content(of: bytes.span), created: .now)
        // Repeated, because the janitor's thread may not have started yet and would miss the call.
        waitUntil("the janitor hears it") {
            #expect(throws: CacheError.self) {
                try core.store.put(bytes.span, for: Digest(ofKey: "new"), record)
            }
            return janitor.isPressed
        }
        waitUntil("the janitor has seen that it can do nothing") { !janitor.isPressed }
        janitor.stop()
        #expect(janitor.waitUntilStopped(.now + hangLimit))
    }

    @Test func `releasing a cache does not wait for a running sweep`() throws {
        let store = try Store(at: path)
        var isUnfinished = false
        // On a busy machine a sweep may end between the check and the release of the cache; then another is tried.
        for _ in 0..<10 where !isUnfinished {
            try self.store(4000, in: try open())
            var cache: SharedCache? = try open(every: .seconds(1))
            waitUntil("a sweep runs") {
                SweepRecord.last(in: store.directory).map { $0.ended == nil } ?? false
            }
            #expect(cache != nil)
            cache = nil
            waitUntil("the sweep ends") {
                SweepRecord.last(in: store.directory).map { $0.ended != nil } ?? false
            }
            isUnfinished = try #require(SweepRecord.last(in: store.directory)).isUnfinished
        }
        #expect(isUnfinished && entries > 0)
    }

    @Test func `no thread or descriptor is left after many caches are opened and closed`() throws {
        func descriptors() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
                .filter { name in
                    let target = try? FileManager.default.destinationOfSymbolicLink(
                        atPath: "/proc/self/fd/" + name
                    )
                    return target?.hasPrefix(place.path) ?? false
                }.count
        }
        func threads() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
                .filter { task in
                    let name = try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
                    return name == "diskcache\n"
                }.count
        }
        let before = try threads()
        for round in 0..<100 {
            let cache = try open()
            if round % 2 == 0 { cache.close() }
        }
        // A thread has its name only once it runs.
        try waitUntil("it is so soon") { try threads() <= before && descriptors() == 0 }
    }
}
