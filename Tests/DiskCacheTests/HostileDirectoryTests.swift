// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

/// Foreign files in a cache directory, and processes that are stopped in the middle of a call.
@Suite(.serialized, .takesTurns) struct HostileDirectoryTests {
    private func objectPath(_ fixture: CacheFixture, _ value: String) -> String {
        fixture.cache.path + "/objects/"
            + StoreLayout.path(of: Digest(of: Array(value.utf8).span)).description
    }
    private func entryPath(_ fixture: CacheFixture, _ key: String) -> String {
        fixture.cache.path + "/entries/" + StoreLayout.path(of: Digest(ofKey: key)).description
    }

    /// Objects put from a file, whose digest is known only after the copy, and sidecar metadata get their names by system calls
    /// that follow links in the path.
    @Test(arguments: [CacheConfiguration.MetadataForm.automatic, .sidecar])
    func `a put never writes through a link in the place of a shard`(
        form: CacheConfiguration.MetadataForm
    ) throws {
        let directory = try TemporaryDirectory()
        let outside = directory.path + "/outside"
        try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: false)
        try Data("value".utf8).write(to: URL(fileURLWithPath: directory.path + "/file"))
        var configuration = CacheConfiguration()
        configuration.metadataForm = form
        let cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        for part in ["objects", "entries"] {
            let digest = part == "objects" ? Digest(of: Array("value".utf8).span) : Digest(ofKey: "key")
            let shard = "\(cache.path)/\(part)/\(StoreLayout.shard(of: digest))"
            try FileManager.default.createSymbolicLink(atPath: shard, withDestinationPath: outside)
            #expect(throws: CacheError.self) {
                try cache.put(contentsOfFile: directory.path + "/file", forKey: "key")
            }
            #expect(throws: CacheError.self) { try cache.put("value", forKey: "key") }
            #expect(try FileManager.default.contentsOfDirectory(atPath: outside).isEmpty)
            try FileManager.default.removeItem(atPath: shard)
        }
        try cache.put(contentsOfFile: directory.path + "/file", forKey: "key")
        #expect(try cache.get(forKey: "key")?.value == Data("value".utf8))
    }

    @Test func `statistics survive records that claim absurd lengths`() async {
        await #expect(processExitsWith: .success) {
            let fixture = try CacheFixture()
            let store = try Store(at: fixture.cache.path)
            for key in ["a", "b"] {
                try await fixture.cache.put("v", forKey: key)
                let digest = Digest(ofKey: key)
                let record = Record(
                    content: Content(digest: digest, length: .max - 1, checksum: 0),
                    created: .now
                )
                try store.directory.entries.setAttribute(
                    "user.dc",
                    of: StoreLayout.path(of: digest),
                    to: record.encoded(for: digest).span
                )
            }
            _ = try await fixture.cache.blocking { try $0.directory.statistics() }
        }
    }

    @Test func `a program that closes all its descriptors keeps running without the cache`() async {
        await #expect(processExitsWith: .success) {
            func open() throws -> Set<Int32> {
                Set(
                    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
                        Int32($0)
                    }
                )
            }
            let directory = try TemporaryDirectory()
            let before = try open()
            do {
                let cache = try SharedCache(at: directory.path + "/cache")
                try cache.put("v", forKey: "k")
                for number in try open().subtracting(before) { close(number) }
                // Calls that need no descriptor still work, the others fail, and none ends the program.
                for call: () throws -> Void in [
                    { _ = try cache.get(forKey: "k") }, { try cache.put("w", forKey: "k") },
                    { _ = try cache.remove(forKey: "k") },
                    { _ = try cache.directory.collect() },
                ] {
                    do { try call() } catch { #expect(error is CacheError) }
                }
                #expect(cache.value(forKey: "other") { Data("computed".utf8) } == Data("computed".utf8))
                cache.close()
            }
        }
    }

    @Test func `verify skips a FIFO`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("v", forKey: "k")
        let path = objectPath(fixture, "v")
        unlink(path)
        #expect(mkfifo(path, 0o600) == 0)
        let cache = fixture.cache
        let result = within(2) { Result { try cache.directory.verify() } }
        if result == nil { close(open(path, O_WRONLY | O_NONBLOCK)) }
        #expect(result != nil)
    }

    @Test(arguments: ["directory", "symlink"])
    func `a directory or link in place of an object is a miss unless a put replaces it`(kind: String) throws {
        let fixture = try CacheFixture()
        let value = kind == "symlink" ? "v" : String(repeating: "x", count: 4096)
        try fixture.cache.put(value, forKey: "k")
        let path = objectPath(fixture, value)
        unlink(path)
        // The link or directory is as long as the value.
        #expect((kind == "symlink" ? symlink("/", path) : mkdir(path, 0o700)) == 0)
        #expect(throws: Never.self) { try #expect(fixture.text("k") == nil) }
        do {
            try fixture.cache.put(value, forKey: "k")
        } catch {
            #expect(kind == "directory" && error.path?.contains("objects/") == true, "\(error)")
            return
        }
        #expect(throws: Never.self) { try #expect(fixture.text("k") == value) }
    }

    @Test(arguments: ["entries/00", "objects/00", "tmp/put-x"])
    func `a stray link is reported and does not stop a collection`(place: String) throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("v", forKey: "k", options: PutOptions(expires: .expired))
        let path = fixture.cache.path + "/" + place
        rmdir(path)
        #expect(symlink("/nowhere", path) == 0)
        var report: CollectionReport?
        #expect(throws: Never.self) { report = try fixture.cache.directory.collect() }
        #expect(report?.removed[.expired]?.count == 1)
        #expect(report?.unrecognised == [place])
    }

    @Test func `an entry that is just being created does not count as corruption`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("w", forKey: "k")
        let path = entryPath(fixture, "k")
        unlink(path)
        makeFile(path)
        #expect(try fixture.text("k") == nil)
        #expect(fixture.cache.directory.activity.corruptions == 0)
    }

    @Test func `removeAll skips a directory in the place of an entry`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("w", forKey: "k")
        let path = entryPath(fixture, "k")
        unlink(path)
        #expect(mkdir(path, 0o700) == 0)
        #expect(throws: Never.self) { try fixture.cache.removeAll() }
    }

    @Test func `a reader that finds damage does not wait for a stopped writer`() throws {
        // It would wait one second for the stripe.
        let limit = Duration.milliseconds(900)
        var shortest = limit
        for _ in 0..<20 where shortest >= limit { shortest = min(shortest, try timeBesideStoppedWriter()) }
        #expect(shortest < limit)
    }

    /// Returns the time that a reader takes to find damage while a stripe is held and a writer of its process waits for it.
    private func timeBesideStoppedWriter() throws -> Duration {
        let fixture = try CacheFixture()
        try fixture.cache.put("v", forKey: "k")
        let path = objectPath(fixture, "v")
        chmod(path, 0o600)
        try Data("w".utf8).write(to: URL(fileURLWithPath: path))
        // Simulates another process that is stopped while it holds the object's stripe.
        let digest = Digest(of: Array("v".utf8).span)
        let name = String(digest.stripe, radix: 16)
        let lock = fixture.cache.path + "/locks/object-" + (name.count < 2 ? "0" + name : name)
        let descriptor = Glibc.open(lock, O_RDWR)
        #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        let cache = fixture.cache
        let writing = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            writing.signal()
            _ = try? cache.put("v", forKey: "other")
        }
        writing.wait()
        usleep(100_000)
        let start = ContinuousClock.now
        #expect(try fixture.text("k") == nil)
        let waited = ContinuousClock.now - start
        close(descriptor)
        return waited
    }

    @Test func `an invisible process's collection is not attributed to another with its number`()
        throws
    {
        let fixture = try CacheFixture()
        let store = try Store(at: fixture.cache.path)
        let lock = try LockFile.acquire(StoreLayout.janitorLock, in: store.directory.locks, patience: .zero)
        guard let lock else { throw CancellationError() }
        SweepRecord(beginning: SweepRequest(), after: nil).write(to: lock.descriptor)
        #expect(store.visibleSweeper(try #require(SweepRecord.last(in: store.directory))) == getpid())
        // Simulates a process in another PID namespace, where its number is 1.
        let path = fixture.cache.path + "/locks/janitor"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let handle = try #require(FileHandle(forWritingAtPath: path))
        let own = "process \(getpid())"
        let other = "process 1".padding(toLength: own.utf8.count, withPad: " ", startingAt: 0)
        try handle.write(contentsOf: Data(text.replacingOccurrences(of: own, with: other).utf8))
        try handle.close()
        #expect(store.visibleSweeper(try #require(SweepRecord.last(in: store.directory))) == nil)
        let error = #expect(throws: CacheError.self) {
            var options = CollectionOptions()
            options.patience = .zero
            try fixture.cache.directory.collect(options)
        }
        #expect(error?.message.contains("process 1 ") == false, "\(error?.message ?? "")")
        lock.release()
    }

    @Test func `a stopped writer delays a collection once, not for every entry`() throws {
        let fixture = try CacheFixture()
        var keys: [String] = []
        var index = 0
        while keys.count < 60 {
            if Digest(ofKey: "k\(index)").stripe == 5 { keys.append("k\(index)") }
            index += 1
        }
        for key in keys { try fixture.cache.put("v", forKey: key, options: PutOptions(expires: .expired)) }
        let descriptor = Glibc.open(fixture.cache.path + "/locks/entry-05", O_RDWR)
        #expect(flock(descriptor, LOCK_SH | LOCK_NB) == 0)
        let start = ContinuousClock.now
        let report = try fixture.cache.directory.collect()
        let waited = ContinuousClock.now - start
        close(descriptor)
        #expect(waited < .seconds(30), "sixty entries must not take sixty seconds")
        #expect(report.skippedStripes.contains("entry-05"))
    }
}

/// Returns the result of `body`, or nil if it takes longer than the given seconds.
private func within<T: Sendable>(_ seconds: Double, _ body: @escaping @Sendable () -> T) -> T? {
    let box = Locked<T?>.Box(nil)
    let end = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        let value = body()
        box.value.withLock { $0 = value }
        end.signal()
    }
    guard end.wait(timeout: .now() + seconds) == .success else { return nil }
    return box.value.withLock { $0 }
}
