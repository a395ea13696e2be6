// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct LockTests {
    let fixture: CacheFixture
    /// A second cache on the directory, which acts as another process to the kernel's locks.
    let other: SharedCache
    var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try CacheFixture { $0.janitor.isEnabled = false }
        other = try SharedCache(at: fixture.cache.path, configuration: fixture.cache.configuration)
    }

    private var files: [String] {
        fixture.directory.files(below: "cache/locks").filter { $0.hasPrefix("lock-") }
    }

    /// The number of lock files that this process has open: one for each holder and one for each waiter.
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

    @Test func `a held lock is busy, the error names its holder, and unlocking frees it`() throws {
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

    @Test func `a lock does not block operations on a key with the same name`() throws {
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

    @Test func `a lock is released when its last reference is dropped`() throws {
        var lock: CacheLock? = try cache.lock("name")
        #expect(try !isFree("name"))
        if lock != nil { lock = nil }
        #expect(try isFree("name"))
        #expect(openFiles == 0)
    }

    @Test func `a second unlock does not release the next holder's lock`() throws {
        let lock = try cache.lock("name")
        lock.unlock()
        let next = try cache.lock("name")
        lock.unlock()
        #expect(try !isFree("name"))
        next.unlock()
    }

    @Test func `a lock stays held after its cache is closed`() throws {
        let lock = try cache.lock("name")
        cache.close()
        #expect(code { _ = try cache.lock("name", within: .zero) } == .closed)
        #expect(try !isFree("name"))
        lock.unlock()
        #expect(try isFree("name"))
    }

    @Test func `a semaphore has as many holders as permits`() throws {
        let locks = try (0..<3).map { _ in try cache.lock("name", permits: 3) }
        #expect(try !isFree("name", permits: 3))
        locks[1].unlock()
        #expect(try isFree("name", permits: 3))
        for lock in locks { lock.unlock() }
        #expect(files.isEmpty)
    }

    @Test(arguments: [("", 1), ("name", 0), ("name", -1), ("name", 257)])
    func `an empty name and an invalid number of permits are refused`(name: String, permits: Int) throws {
        #expect(code { _ = try cache.lock(name, permits: permits) } == .invalidArgument)
        #expect(files.isEmpty)
    }

    @Test func `a lock name can be any text`() throws {
        let names = ["é", "e\u{301}", "a/b", "..", String(repeating: "long ", count: 1000), "\0"]
        let locks = try names.map { try cache.lock($0, within: .zero) }
        #expect(files.count == names.count)
        for lock in locks { lock.unlock() }
    }

    // MARK: Waiting

    @Test func `a waiter acquires the lock when it is released`() throws {
        let lock = try cache.lock("name")
        let other = other
        let goesOn = expectBlocks { try? other.lock("name").unlock() }
        lock.unlock()
        goesOn()
    }

    @Test func `a holder that relocks at once does not starve a waiter`() throws {
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
        // Without fairness it would have tens of thousands.
        #expect(turns.value.withLock { $0 } < 1000)
        try cache.directory.collect()
        #expect(files.isEmpty)
    }

    @Test func `a call that may wait gives way to a waiter, and one that may not tries once more`() throws {
        let lock = try cache.namedLock("name", permits: 1)
        let held = try #require(try lock.attempt())
        #expect(try other.namedLock("name", permits: 1).attempt(givesWay: true, waits: true).permit == nil)
        held.release()
        // The other caller is about to try again.
        var patient = LockWait(within: .seconds(3600))
        if case .pause = try patient.attempt(lock) {} else { Issue.record("it has not given way") }
        guard case .acquired(let permit) = try patient.attempt(lock) else {
            Issue.record("it gives way more than once")
            return
        }
        permit.abandon()
        // A collection that looks at the file of a dead holder locks it, for a few system calls.
        let looking = try FileDescriptor(opening: "\(cache.path)/locks/\(files[0])", .readOnly)
        #expect(try looking.tryLock(.shared))
        let calls = Locked<Int>.Box(0)
        let kept = Locked<FileDescriptor?>.Box(looking)
        let step = try SystemCall.withFaults { call in
            guard call == .lock else { return nil }
            let count = calls.value.withLock { count in
                count += 1
                return count
            }
            if count == 2 { kept.value.withLock { $0 = nil } }
            return nil
        } _: {
            var hasty = LockWait(within: .zero)
            return try hasty.attempt(lock)
        }
        if case .acquired = step {} else { Issue.record("it takes the collection for a holder: \(step)") }
    }

    @Test func `a lock call waits for its time limit and not much longer`() throws {
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

    @Test func `only one of many threads holds the lock at a time`() throws {
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

    // MARK: Tasks

    @Test func `a lock is held until the closure returns or throws`() async throws {
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

    @Test func `the closure can mutate its caller's variables`() async throws {
        var words: [String] = []
        try await cache.lock("name").whileHeld { words.append("inside") }
        #expect(words == ["inside"])
    }

    @Test func `a task cancelled while it waits for a lock throws and closes its file`() async throws {
        let other = other
        let lock = try await cache.lock("name")
        let task = Task { try await other.lock("name") }
        try await eventually("it waits") { openFiles == 2 }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        try await eventually("its file is closed") { openFiles == 1 }
        #expect(lock.name == "name", "held until here")
    }

    @Test func `a task whose wait times out gets an error that names the holder`() async throws {
        let lock = try await cache.lock("name")
        let error = await #expect(throws: CacheError.self) {
            _ = try await other.lock("name", within: .milliseconds(5))
        }
        #expect(error?.code == .busy)
        #expect(error?.message.contains("process \(getpid()) holds it") == true)
        #expect(lock.name == "name", "held until here")
    }

    @Test func `waiting tasks do not block other tasks, and each acquires the lock`() async throws {
        let other = other
        let lock = try await cache.lock("name")
        let tasks = (0..<64).map { _ in
            Task.detached { try await other.lock("name").whileHeld { true } }
        }
        try await eventually("all wait") { openFiles == 65 }
        // If each waiter blocked a thread of Swift's cooperative pool, none would be left for this task.
        #expect(await Task.detached { 1 }.value == 1)
        await cache.blocking { _ in lock.unlock() }
        for task in tasks { #expect(try await task.value) }
        #expect(openFiles == 0 && files.isEmpty)
    }
}
