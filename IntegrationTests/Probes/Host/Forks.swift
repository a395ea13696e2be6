// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport

/// fork(2), which Swift's import of the C library does not provide.
let forkProcess = unsafeBitCast(dlsym(nil, "fork"), to: (@convention(c) () -> Int32).self)

/// A program that forks while a cache is open, and exits if an expectation is not met.
struct ForkingHost {
    let path: String

    init(_ path: String) {
        self.path = path
    }

    private func expect(_ condition: Bool, _ what: @autoclosure () -> String, line: Int = #line) {
        if condition { return }
        FileHandle.standardError.write(Data("line \(line): \(what())\n".utf8))
        _exit(1)
    }

    /// Runs a closure in a child process, and waits until the child ends.
    private func inChild(_ body: () throws -> Void) {
        let child = forkProcess()
        if child == 0 {
            do {
                try body()
            } catch {
                expect(false, "\(error)")
            }
            _exit(0)
        }
        expectSuccess(of: child)
    }

    private func expectSuccess(of child: Int32) {
        var status: Int32 = -1
        expect(waitpid(child, &status, 0) == child && status == 0, "the child has ended with \(status)")
    }

    private func expectForked(line: Int = #line, _ body: () throws(CacheError) -> Void) {
        do throws(CacheError) {
            try body()
            expect(false, "no error", line: line)
        } catch {
            expect(error.code == .forked, "\(error)", line: line)
        }
    }

    /// Returns whether another process could take a lock now.
    private func isFree(_ name: String) -> Bool {
        let file = open("\(path)/locks/\(name)", O_RDWR | O_CLOEXEC)
        defer { close(file) }
        return file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0
    }

    /// Returns whether any process holds a lock.
    private func isHeld(_ name: String) -> Bool {
        access("\(path)/locks/\(name)", F_OK) == 0 && !isFree(name)
    }

    // MARK: Tasks

    /// Uses the parent's cache in a child, and then a cache that the child opens itself.
    func useInChild() throws {
        let cache = try SharedCache(at: path)
        try cache.put("value", forKey: "key")
        var other = Optional(try SharedCache(at: path))
        inChild {
            other = nil
            expectForked { () throws(CacheError) in _ = try cache.get(forKey: "key") }
            expectForked { () throws(CacheError) in _ = try cache.contains(forKey: "key") }
            expectForked { () throws(CacheError) in _ = try cache.entry(forKey: "key") }
            expectForked { () throws(CacheError) in try cache.put("other", forKey: "key") }
            expectForked { () throws(CacheError) in
                try cache.put("other", forKey: "key", options: PutOptions(writing: .behind))
            }
            expectForked { () throws(CacheError) in _ = try cache.remove(forKey: "key") }
            expectForked { () throws(CacheError) in _ = try cache.directory.collect() }
            expectForked { () throws(CacheError) in _ = try cache.entries() }
            expect(!cache.flush(), "nothing is flushed here")
            expect(cache.memory.count == 0, "the memory is the parent's")
            expect(cache.directory.activity.puts == 0, "so is what was done")
            let computed = cache.value(forKey: "key") { Data("computed".utf8) }
            expect(computed == Data("computed".utf8), "it computes")
            try askForAll(cache)
            let report = cache.close()
            expect(!report.wasLast && report.failure == nil, "\(report)")

            try SharedCache.closeOnTermination()
            let own = try SharedCache(at: path)
            expect(try own.get(forKey: "key")?.value == Data("value".utf8), "the value of the parent")
            try own.put("child", forKey: "child")
            expect(!own.close().wasLast, "the parent has it open")
        }
        expect(isHeld("sessions"), "it is still open")
        expect(try other?.get(forKey: "key") != nil, "so is the one that the child has let go of")
        other?.close()
        expect(try cache.get(forKey: "child")?.value == Data("child".utf8), "the value of the child")
        try cache.put("again", forKey: "key")
        expect(cache.close().wasLast, "the child is gone")
    }

    /// Checks that a child computes every value that it requests from its parent's cache, without waiting.
    private func askForAll(_ cache: SharedCache) throws {
        let child = Data("child".utf8)
        let hit = try cache.hit(forKey: "key") { computation in
            expect(computation.previous == nil, "it sees nothing")
            return .value(child)
        }
        expect(hit?.value == child && hit?.source == .computed, "the value of the child")
        expect(try cache.hit(forKey: "key") { _ in .nothing(for: .seconds(5)) } == nil, "nothing")
        let reading = ReadOptions(source: .cache)
        let uncomputed = try cache.hit(forKey: "key", reading: reading) { _ in .unkept(child) }
        expect(uncomputed == nil, "nothing is computed")
        let values = try cache.values(forKeys: ["key", "other"]) { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, child) })
        }
        expect(values == ["key": child, "other": child], "the values of the child")
    }

    /// Makes calls in a child while a put of the parent is pending; the child never publishes that put.
    func waitInChild() throws {
        let cache = try SharedCache(at: path)
        let locks = try FileManager.default.contentsOfDirectory(atPath: path + "/locks")
        for name in locks where name.hasPrefix("entry-") {
            let file = open("\(path)/locks/\(name)", O_RDWR | O_CLOEXEC)
            expect(file >= 0 && flock(file, LOCK_EX) == 0, "\(name) is held until this process ends")
        }
        try cache.put("value", forKey: "key", options: PutOptions(writing: .behind))
        inChild {
            // Ends the child if a call waits.
            alarm(30)
            expectForked { () throws(CacheError) in _ = try cache.entries() }
            expectForked { () throws(CacheError) in try cache.removeAll() }
            expectForked { () throws(CacheError) in _ = try cache.directory.data(for: Digest(of: Data())) }
            expect(!cache.flush(), "nothing is flushed here")
        }
        withExtendedLifetime(cache) {}
    }

    /// Continues and ends, in a child, a computation that the parent has started.
    func computeInChild() throws {
        let cache = try SharedCache(at: path)
        let parent = getpid()
        let value = cache.value(forKey: "key") { () -> Data in
            let flights =
                (try? FileManager.default.contentsOfDirectory(atPath: path + "/locks"))?.filter {
                    $0.hasPrefix("flight-")
                } ?? []
            expect(flights.count == 1 && isHeld(flights[0]), "it is computed")
            let child = forkProcess()
            if child == 0 { return Data("child".utf8) }
            expectSuccess(of: child)
            expect(isHeld(flights[0]), "it is still computed")
            return Data("parent".utf8)
        }
        if getpid() != parent {
            expect(value == Data("child".utf8), "its own value")
            _exit(0)
        }
        expect(try cache.get(forKey: "key")?.value == Data("parent".utf8), "the one value that is stored")
        try computeManyInChild(cache)
        cache.close()
    }

    /// Forks during a computation of many keys, some of whose computations have not started.
    private func computeManyInChild(_ cache: SharedCache) throws {
        let parent = getpid()
        let all = (0..<200).map { "many \($0)" }
        let values = try cache.values(forKeys: all) { keys in
            // The first of two calls of this closure.
            if keys.count == 128, getpid() == parent {
                let child = forkProcess()
                if child != 0 { expectSuccess(of: child) }
            }
            let text = getpid() == parent ? "parent" : "child"
            return Dictionary(uniqueKeysWithValues: keys.map { ($0, Data(text.utf8)) })
        }
        expect(values.count == 200, "all of them")
        if getpid() != parent {
            expect(values.values.allSatisfy { $0 == Data("child".utf8) }, "its own values")
            _exit(0)
        }
        expect(values.values.allSatisfy { $0 == Data("parent".utf8) }, "those of the parent")
    }

    /// Requests, in a child, a key that the parent computes on another thread.
    func askInChild() throws {
        let cache = try SharedCache(at: path)
        let begun = DispatchSemaphore(value: 0)
        let (mayEnd, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            _ = cache.value(forKey: "key") { () -> Data in
                begun.signal()
                mayEnd.wait()
                return Data("parent".utf8)
            }
            ended.signal()
        }
        begun.wait()
        inChild {
            let value = cache.value(forKey: "key") { Data("child".utf8) }
            expect(value == Data("child".utf8), "nobody computes it here")
            try askForAll(cache)
        }
        mayEnd.signal()
        ended.wait()
        expect(try cache.get(forKey: "key")?.value == Data("parent".utf8), "it was stored")
        cache.close()
    }

    /// Releases the parent's locks in a child, and then in the parent while another child still holds their descriptors.
    func giveBackInChild() throws {
        try FileManager.default.createDirectory(atPath: path + "/locks", withIntermediateDirectories: true)
        let directory = try Directory(opening: path + "/locks")
        func makeLock() throws -> FileLock {
            FileLock(owning: try FileDescriptor(opening: path + "/locks/stripe", [.readWrite, .create]))
        }
        let (lock, other) = (try makeLock(), try makeLock())
        try lock.lock(.exclusive, patience: .zero)
        var file = try LockFile.acquire("janitor", in: directory, patience: .zero)
        inChild {
            lock.unlock(.exclusive)
            file.take()?.release()
        }
        expect(isHeld("stripe") && isHeld("janitor"), "both are held by this process")
        var ends: [Int32] = [0, 0]
        expect(pipe(&ends) == 0, "a pipe")
        let child = forkProcess()
        if child == 0 {
            close(ends[1])
            var byte: UInt8 = 0
            _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1)
        }
        lock.unlock(.exclusive)
        file.take()?.release()
        expect(isFree("stripe") && isFree("janitor"), "whoever has the files open, too")
        try other.lock(.exclusive, patience: .zero)
        close(ends[1])
        expectSuccess(of: child)
    }

    /// Releases a named lock of the parent in a child, and then in the parent while another child still holds its
    /// descriptor.
    ///
    /// In the child, neither unlocking nor deinitializing the lock has an effect, and the parent's cache can't take
    /// another lock.
    func lockInChild() throws {
        let cache = try SharedCache(at: path)
        func isNamedLockFree() -> Bool {
            (try? SharedCache(at: path).lock("name", within: .zero).unlock()) != nil
        }
        var lock = Optional(try cache.lock("name"))
        inChild {
            lock?.unlock()
            lock = nil
            expectForked { () throws(CacheError) in _ = try cache.lock("other") }
            expect(!isNamedLockFree(), "it is still its parent's")
        }
        expect(!isNamedLockFree(), "it is held by this process")
        var ends: [Int32] = [0, 0]
        expect(pipe(&ends) == 0, "a pipe")
        let child = forkProcess()
        if child == 0 {
            close(ends[1])
            var byte: UInt8 = 0
            _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1)
        }
        lock?.unlock()
        expect(isNamedLockFree(), "whoever has the file open, too")
        close(ends[1])
        expectSuccess(of: child)
        cache.close()
    }

    /// Uses a cache in a child on several threads, including the one that forked; each holds locks for which the others
    /// wait.
    func contendInChild() throws {
        // Makes the thread cache its own state for locks before it forks.
        Locked(0).withLock { $0 += 1 }
        inChild {
            let cache = try SharedCache(at: path)
            try cache.put("value", forKey: "key")
            let ended = DispatchSemaphore(value: 0)
            @Sendable func use() {
                for _ in 0..<20_000 {
                    expect((try? cache.get(forKey: "key"))?.value == Data("value".utf8), "the value")
                }
            }
            for _ in 0..<3 {
                Thread.detachNewThread {
                    use()
                    ended.signal()
                }
            }
            use()
            for _ in 0..<3 { ended.wait() }
            cache.close()
        }
    }

    /// Runs the example of OpeningAndClosing.md.
    func prefork() throws {
        // example begins
        let fork = unsafeBitCast(dlsym(nil, "fork"), to: (@convention(c) () -> Int32).self)
        var workers: [Int32] = []
        for number in 0..<4 {
            let worker = fork()
            if worker == 0 {
                try SharedCache.closeOnTermination()
                let cache = try SharedCache(at: path)  // each its own
                try serve(number, cache)
                cache.close()
                exit(0)
            }
            workers.append(worker)
        }
        for worker in workers { waitpid(worker, nil, 0) }
        // example ends
        let cache = try SharedCache(at: path)
        for number in 0..<4 {
            expect(
                try cache.get(forKey: "worker \(number)")?.value == Data("served".utf8),
                "worker \(number)"
            )
        }
        cache.close()
    }

    private func serve(_ number: Int, _ cache: SharedCache) throws {
        try cache.put("served", forKey: "worker \(number)")
    }
}
