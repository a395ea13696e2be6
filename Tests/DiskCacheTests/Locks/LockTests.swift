// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct LockTests {
    let fixture: CacheFixture
    /// To the kernel's locks it is as another process.
    let other: SharedCache
    var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try CacheFixture { $0.janitor.isEnabled = false }
        other = try SharedCache(at: fixture.cache.path, configuration: fixture.cache.configuration)
    }

    private var files: [String] {
        fixture.directory.files(below: "cache/locks").filter { $0.hasPrefix("lock-") }
    }

    /// How many files of locks this process has open: one for who holds a lock, one for who waits for it.
    private var openFiles: Int {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.count {
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
            return path?.hasPrefix(cache.path + "/locks/lock-") ?? false
        }
    }

    private func isFree(_ name: String, permits: Int = 1) throws -> Bool {
        do throws(CacheError) {
            try other.lock(name, permits: permits, within: .zero).unlock()
            return true
        } catch {
            if error.code == .busy { return false }
            throw error
        }
    }

    // MARK: Holding

    @Test func `one holds it, the others are told who, and it is free once it is given back`() throws {
        let lock = try cache.lock("name")
        #expect(lock.name == "name")
        let error = #expect(throws: CacheError.self) { _ = try other.lock("name", within: .zero) }
        #expect(error?.code == .busy)
        #expect(error?.message.contains("the lock name in \(cache.path)") == true)
        #expect(error?.message.contains("process \(getpid()) holds it") == true)
        #expect(try isFree("another name"))
        lock.unlock()
        #expect(try isFree("name"))
        #expect(files.isEmpty)
    }

    @Test func `it keeps nobody from the value of a key of the same name`() throws {
        let lock = try cache.lock("key")
        try other.put("value", forKey: "key")
        #expect(try other.get(forKey: "key")?.value == Data("value".utf8))
        #expect(try other.remove(forKey: "key"))
        let computed = other.value(forKey: "key") { Data("computed".utf8) }
        #expect(computed == Data("computed".utf8))
        #expect(try other.directory.collect().isComplete)
        #expect(try !isFree("key"), "the collection has left it alone")
        lock.unlock()
    }

    @Test func `who lets go of it has given it back`() throws {
        var lock: CacheLock? = try cache.lock("name")
        #expect(try !isFree("name"))
        if lock != nil { lock = nil }
        #expect(try isFree("name"))
        #expect(openFiles == 0)
    }

    @Test func `to give it back twice takes it from nobody`() throws {
        let lock = try cache.lock("name")
        lock.unlock()
        let next = try cache.lock("name")
        lock.unlock()
        #expect(try !isFree("name"))
        next.unlock()
    }

    @Test func `it outlives the cache that it came from`() throws {
        let lock = try cache.lock("name")
        cache.close()
        #expect(code { _ = try cache.lock("name", within: .zero) } == .closed)
        #expect(try !isFree("name"))
        lock.unlock()
        #expect(try isFree("name"))
    }

    @Test func `a semaphore is held by so many as it has permits`() throws {
        let locks = try (0..<3).map { _ in try cache.lock("name", permits: 3) }
        #expect(try !isFree("name", permits: 3))
        locks[1].unlock()
        #expect(try isFree("name", permits: 3))
        for lock in locks { lock.unlock() }
        #expect(files.isEmpty)
    }

    @Test(arguments: [("", 1), ("name", 0), ("name", -1), ("name", 257)])
    func `no name, and a number of permits that can't be, are refused`(name: String, permits: Int) throws {
        #expect(code { _ = try cache.lock(name, permits: permits) } == .invalidArgument)
        #expect(files.isEmpty)
    }

    @Test func `names of locks may be any text`() throws {
        let names = ["é", "e\u{301}", "a/b", "..", String(repeating: "long ", count: 1000), "\0"]
        let locks = try names.map { try cache.lock($0, within: .zero) }
        #expect(files.count == names.count)
        for lock in locks { lock.unlock() }
    }

    // MARK: Waiting

    @Test func `who waits has it when it is given back`() throws {
        let lock = try cache.lock("name")
        let other = other
        let goesOn = expectBlocks { try? other.lock("name").unlock() }
        lock.unlock()
        goesOn()
    }

    @Test func `one that takes it again at once does not keep it from who waits`() throws {
        let (turns, isServed) = (Locked<Int>.Box(0), Locked<Bool>.Box(false))
        let lock = try cache.lock("name")
        let (cache, other) = (cache, other)
        let goesOn = expectBlocks {
            try? other.lock("name").unlock()
            isServed.value.withLock { $0 = true }
        }
        lock.unlock()
        while !isServed.value.withLock({ $0 }) {
            try cache.lock("name").unlock()
            turns.value.withLock { $0 += 1 }
        }
        goesOn()
        // Without courtesy it has had tens of thousands.
        #expect(turns.value.withLock { $0 } < 1000)
        try cache.directory.collect()
        #expect(files.isEmpty)
    }

    @Test func `the time for waiting is used up, and not more`() throws {
        let lock = try cache.lock("name")
        let limit = Duration.milliseconds(30)
        let time = ContinuousClock().measure {
            #expect(code { _ = try other.lock("name", within: limit) } == .busy)
        }
        #expect(time >= limit)
        let shortest = shortestTime(below: .milliseconds(200)) {
            #expect(code { _ = try other.lock("name", within: limit) } == .busy)
        }
        #expect(shortest < .milliseconds(200))
        #expect(openFiles == 1, "of the holder")
        lock.unlock()
    }

    @Test func `of many threads one at a time has it`() throws {
        let (inside, overlaps, turns) = (Locked<Int>.Box(0), Locked<Int>.Box(0), Locked<Int>.Box(0))
        let caches = [cache, other]
        onThreads(8) { index in
            for _ in 0..<10 {
                guard let lock = try? caches[index % 2].lock("name") else { continue }
                let count = inside.value.withLock {
                    $0 += 1
                    return $0
                }
                sleepThread(for: .microseconds(100))
                if count != 1 { overlaps.value.withLock { $0 += 1 } }
                inside.value.withLock { $0 -= 1 }
                lock.unlock()
                turns.value.withLock { $0 += 1 }
            }
        }
        #expect(overlaps.value.withLock { $0 } == 0)
        #expect(turns.value.withLock { $0 } == 80)
    }

    // MARK: In tasks

    @Test func `it is held as long as the closure runs, also if that throws`() async throws {
        struct Own: Error {}
        let other = other
        let text = try await cache.lock("name").whileHeld {
            await #expect(throws: CacheError.self) { _ = try await other.lock("name", within: .zero) }
            return "done"
        }
        #expect(text == "done")
        await #expect(throws: Own.self) {
            let lock = try await other.lock("name", within: .zero)
            try await lock.whileHeld { () async throws(Own) -> Void in throw Own() }
        }
        #expect(openFiles == 0 && files.isEmpty)
    }

    @Test func `what the closure changes may belong to its caller`() async throws {
        var words: [String] = []
        try await cache.lock("name").whileHeld { words.append("inside") }
        #expect(words == ["inside"])
    }

    @Test func `a task that is cancelled while it waits stops, and leaves nothing open`() async throws {
        let other = other
        let lock = try await cache.lock("name")
        let task = Task { try await other.lock("name") }
        try await eventually("it waits") { openFiles == 2 }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        try await eventually("its file is closed") { openFiles == 1 }
        #expect(lock.name == "name", "held until here")
    }

    @Test func `a task whose time is up is told who holds it`() async throws {
        let lock = try await cache.lock("name")
        let error = await #expect(throws: CacheError.self) {
            _ = try await other.lock("name", within: .milliseconds(5))
        }
        #expect(error?.code == .busy)
        #expect(error?.message.contains("process \(getpid()) holds it") == true)
        #expect(lock.name == "name", "held until here")
    }

    @Test func `tasks that wait hold up no other task, and each gets its turn`() async throws {
        let other = other
        let lock = try await cache.lock("name")
        let tasks = (0..<64).map { _ in
            Task.detached { try await other.lock("name").whileHeld { true } }
        }
        try await eventually("all wait") { openFiles == 65 }
        // With a thread of Swift's pool for each of those there would be none for this one.
        #expect(await Task.detached { 1 }.value == 1)
        await cache.blocking { _ in lock.unlock() }
        for task in tasks { #expect(try await task.value) }
        #expect(openFiles == 0 && files.isEmpty)
    }
}
