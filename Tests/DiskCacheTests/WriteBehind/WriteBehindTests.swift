// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Dispatch
import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

/// A publication that blocks until the test releases it.
private final class Valve: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    let published = Locked<[String]>([])
    let taken = Locked(0)

    func publish(_ write: PendingWrite) {
        pass()
        published.withLock { $0.append("\(write.key)=\(String(decoding: write.data, as: UTF8.self))") }
    }

    func pass() {
        taken.withLock { $0 += 1 }
        semaphore.wait()
    }

    func open(_ count: Int = 1) {
        for _ in 0..<count { semaphore.signal() }
    }
}

private func write(_ key: String, _ value: String) -> PendingWrite {
    let data = Data(value.utf8)
    let digest = Digest(ofKey: key)
    let draft = Record(content: Content(digest: digest, length: data.count, checksum: 0), created: .now)
    return PendingWrite(data, forKey: key, in: .callers, digest, draft: draft)
}

@Suite(.takesTurns) struct WriteBehindTests {
    @Test func `a put returns before it is published, and reads see it`() {
        let gate = Valve()
        let queue = WriteBehind(limits: .init(size: .bytes(100), count: 10)) { gate.publish($0) }
        #expect(queue.put(write("a", "1")))
        #expect(queue.latest { Digest(ofKey: "a") }?.value == Data("1".utf8))
        #expect(gate.published.withLock { $0 }.isEmpty)
        gate.open()
        #expect(queue.flush())
        #expect(queue.latest { Digest(ofKey: "a") } == nil)
        #expect(gate.published.withLock { $0 } == ["a=1"])
    }

    @Test func `a put that arrives while its key is being published needs no further put`() {
        let gate = Valve()
        let queue = WriteBehind(limits: .init(size: .bytes(100), count: 10)) { gate.publish($0) }
        #expect(queue.put(write("a", "1")))
        // Before the first put is taken, the second would replace it instead of waiting for its own turn.
        while gate.taken.withLock({ $0 }) == 0 { sleepThread(for: .milliseconds(1)) }
        #expect(queue.put(write("a", "2")))
        gate.open(2)
        #expect(queue.flush(until: .now + hangLimit))
        #expect(gate.published.withLock { $0 } == ["a=1", "a=2"])
    }

    @Test func `a full queue makes the next put wait for room`() {
        let gate = Valve()
        let queue = WriteBehind(limits: .init(size: .bytes(100), count: 1)) { gate.publish($0) }
        #expect(queue.put(write("a", "1")))
        let second = write("b", "2")
        let goesOn = expectBlocks { #expect(queue.put(second)) }
        gate.open()
        goesOn()
        gate.open()
        #expect(queue.flush())
        #expect(gate.published.withLock { $0 } == ["a=1", "b=2"])
    }

    @Test func `a put larger than the queue is not queued`() {
        let queue = WriteBehind(limits: .init(size: .bytes(3), count: 10)) { _ in }
        #expect(!queue.put(write("a", "1234")))
        #expect(queue.isIdle)
        let none = WriteBehind(limits: .init(size: .bytes(100), count: 0)) { _ in }
        #expect(!none.put(write("a", "1")))
    }

    @Test func `a flush stops at its deadline`() {
        let gate = Valve()
        let queue = WriteBehind(limits: .init(size: .bytes(100), count: 10)) { gate.publish($0) }
        #expect(queue.put(write("a", "1")))
        #expect(!queue.flush(until: .now + .milliseconds(20)))
        gate.open()
        #expect(queue.flush(until: .now + .seconds(60)))
    }

    @Test func `settling publishes a waiting put at once, or waits for one in progress`() {
        let gate = Valve()
        let queue = WriteBehind(limits: .init(size: .bytes(100), count: 10)) { gate.publish($0) }
        #expect(queue.put(write("a", "1")))
        #expect(queue.put(write("b", "2")))
        // The background thread is blocked in the publication of "a".
        let goesOn = expectBlocks { queue.settle(Digest(ofKey: "a")) }
        gate.open(2)
        goesOn()
        queue.settle(Digest(ofKey: "b"))
        #expect(gate.published.withLock { $0 }.sorted() == ["a=1", "b=2"])
        #expect(queue.isIdle)
    }

    @Test func `a caller that cannot tell whether a put is current waits until the put ends`() throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let store = try Store(at: directory.path + "/cache")
        let gate = Valve()
        let queue = WriteBehind(limits: .init(size: .bytes(100), count: 10)) { write in
            write.noteWriting(at: nil)
            gate.pass()
            write.noteEnd()
        }
        let first = write("a", "1")
        #expect(first.standing(in: store) == .latest, "it waits, and only its process can see it")
        #expect(queue.put(first))
        while gate.taken.withLock({ $0 }) == 0 { sleepThread(for: .milliseconds(1)) }
        #expect(first.standing(in: store) == .unsettled)
        #expect(!queue.awaitEnd(of: first, within: .milliseconds(1)), "it has not ended")
        let goesOn = expectBlocks { #expect(queue.awaitEnd(of: first, within: hangLimit)) }
        gate.open()
        goesOn()
        #expect(first.standing(in: store) == .ended)
    }

    @Test func `each key's values are published in put order when many threads put`() {
        let published = Locked<[String: [Int]]>([:])
        let queue = WriteBehind(limits: .init(size: .bytes(2000), count: 50)) { write in
            let number = Int(String(decoding: write.data, as: UTF8.self)) ?? -1
            published.withLock { $0[write.key, default: []].append(number) }
        }
        onThreads(4) { thread in
            for round in 0..<2000 {
                #expect(queue.put(write("\(thread)", "\(round)")))
                if round % 100 == 0 { queue.settle(Digest(ofKey: "\(thread)")) }
            }
        }
        #expect(queue.flush())
        let result = published.withLock { $0 }
        #expect(result.count == 4)
        for (_, numbers) in result {
            #expect(numbers == numbers.sorted())
            #expect(numbers.last == 1999)
        }
    }
}

@Suite(.takesTurns) struct SharedCacheWriteBehindTests {
    private func fixture() throws -> CacheFixture {
        try CacheFixture {
            $0.memory = CacheConfiguration.Memory()
            $0.writing = .behind
        }
    }

    @Test func `a pending value that is replaced is released outside the lock`() {
        let gate = Valve()
        let queue = WriteBehind(limits: .init(size: .bytes(1000), count: 10)) { gate.publish($0) }
        #expect(queue.put(write("first", "1")))
        waitUntil("it is being published") { gate.taken.withLock { $0 } == 1 }
        let released = Locked(0)
        let isOver = Locked(false)
        Thread.detachNewThread {
            for _ in 0..<3 {
                let bytes = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 1)
                let data = Data(
                    bytesNoCopy: bytes,
                    count: 64,
                    deallocator: .custom { bytes, _ in
                        // The lookup takes the queue's lock.
                        _ = queue.latest { Digest(ofKey: "first") }
                        released.withLock { $0 += 1 }
                        bytes.deallocate()
                    }
                )
                let digest = Digest(ofKey: "key")
                let draft = Record(content: Content(digest: digest, length: 64, checksum: 0), created: .now)
                _ = queue.put(PendingWrite(data, forKey: "key", in: .callers, digest, draft: draft))
            }
            isOver.withLock { $0 = true }
        }
        waitUntil("no put waits for itself") { isOver.withLock { $0 } }
        #expect(released.withLock { $0 } >= 1)
        gate.open(2)
        #expect(queue.flush())
    }

    @Test func `every call in the process sees a put at once`() throws {
        let fixture = try fixture()
        let cache = fixture.cache
        for round in 0..<200 {
            let key = "key \(round)"
            try cache.put("old", forKey: key)
            try cache.put("new", forKey: key)
            switch round % 8 {
            case 0: #expect(try fixture.text(key) == "new")
            case 1: #expect(try cache.contains(forKey: key))
            case 2: #expect(try cache.entry(forKey: key)?.size == 3)
            case 3:
                #expect(try cache.remove(forKey: key))
                #expect(try fixture.text(key) == nil)
            case 4:
                #expect(
                    try cache.update(forKey: key) { .value(($0?.value ?? Data()) + Data("er".utf8)) }
                        == Data("newer".utf8)
                )
            case 5: #expect(try !cache.putIfAbsent(Data(), forKey: key))
            case 6:
                try cache.put("through", forKey: key, options: PutOptions(writing: .through))
                #expect(try fixture.text(key) == "through")
            default: #expect(try cache.setExpiration(.expired, forKey: key))
            }
        }
        #expect(cache.flush())
        let other = try SharedCache(at: cache.path)
        for round in 0..<200 {
            let text = try other.get(forKey: "key \(round)").map { String(decoding: $0.value, as: UTF8.self) }
            #expect(text == ["new", "new", "new", nil, "newer", "new", "through", nil][round % 8])
        }
    }

    @Test func `a failed put leaves the previous value, even a pending one`() throws {
        let fixture = try fixture()
        let tooLong = PutOptions(metadata: ["long": String(repeating: "x", count: 70_000)], writing: .through)
        for round in 0..<200 {
            try fixture.cache.put("\(round)", forKey: "key")
            #expect(
                code { try fixture.cache.put("x", forKey: "key", options: tooLong) }
                    == .invalidArgument
            )
            #expect(try fixture.text("key") == "\(round)")
        }
    }

    @Test func `no thread of the process sees an older value while a pending one is overwritten`() throws {
        let fixture = try fixture()
        let cache = fixture.cache
        let promised = Atomic<Int>(-1)
        let isOver = Atomic<Bool>(false)
        onThreads(2) { thread in
            guard thread == 0 else {
                while !isOver.load(ordering: .acquiring) {
                    let least = promised.load(ordering: .acquiring)
                    let seen = (try? fixture.text("key")).flatMap { $0 }.flatMap { Int($0) } ?? -1
                    if seen >= least { continue }
                    Issue.record("\(seen) after \(least)")
                    return
                }
                return
            }
            for round in 1...500 {
                let value = 2 * round
                do {
                    try cache.put("\(value)", forKey: "key", options: PutOptions(writing: .behind))
                    promised.store(value, ordering: .releasing)
                    try cache.put("\(value + 1)", forKey: "key", options: PutOptions(writing: .through))
                    promised.store(value + 1, ordering: .releasing)
                } catch {
                    Issue.record(error)
                }
            }
            isOver.store(true, ordering: .releasing)
        }
    }

    @Test func `content stored under its digest is readable at once`() throws {
        let fixture = try fixture()
        for round in 0..<50 {
            let data = Data("\(round)".utf8)
            let digest = try fixture.cache.directory.store(data)
            #expect(try fixture.cache.directory.data(for: digest) == data)
        }
    }

    @Test func `a value that another process removes or replaces during its put is not returned`()
        async throws
    {
        let valve = Valve()
        let fixture = try CacheFixture {
            $0.memory = CacheConfiguration.Memory()
            // The put blocks when its value, already on disk, replaces the old one in memory.
            $0.onEvent = { event in
                if case .removedFromMemory("key", .replaced, _, _) = event { valve.pass() }
            }
        }
        let cache = fixture.cache
        let view = cache.typed(String.self)
        try await cache.put(Data("\"old\"".utf8), forKey: "key")
        try await cache.put(Data("\"mine\"".utf8), forKey: "key", options: PutOptions(writing: .behind))
        while valve.taken.withLock({ $0 }) == 0 { sleepThread(for: .milliseconds(1)) }
        defer { valve.open() }
        // Uses the same clock, because a value from a clock ahead of the reader's is a miss.
        var configuration = CacheConfiguration()
        configuration.now = cache.configuration.now
        let other = try SharedCache(at: cache.path, configuration: configuration)
        #expect(try await other.typed(String.self).get(forKey: "key")?.value == "mine")
        func synchronously() throws -> [Data?] {
            [
                try cache.get(forKey: "key")?.value,
                try view.get(forKey: "key").map { try view.codec.encode($0.value) },
            ]
        }
        func expect(_ value: String?, _ when: Comment) async throws {
            let data = value.map { Data("\"\($0)\"".utf8) }
            #expect(try synchronously() == [data, data], when)
            #expect(try await view.get(forKey: "key")?.value == value, when)
            #expect(try await cache.get(forKey: "key")?.value == data, when)
        }
        try await expect("mine", "nobody has changed it")
        #expect(try await other.remove(forKey: "key"))
        try await expect(nil, "removed")
        try await other.typed(String.self).put("theirs", forKey: "key")
        try await expect("theirs", "replaced")
        #expect(await cache.value(forKey: "key") { Data() } == Data("\"theirs\"".utf8))
    }

    /// Returns a cache whose background thread blocks until the valve is opened, so that write-behind puts stay pending.
    private func stuckFixture() throws -> (CacheFixture, Valve) {
        let valve = Valve()
        let fixture = try CacheFixture {
            $0.memory = CacheConfiguration.Memory()
            $0.onEvent = { event in
                if case .removedFromMemory("stuck", .replaced, _, _) = event { valve.pass() }
            }
        }
        try fixture.cache.put("old", forKey: "stuck")
        try fixture.cache.put(
            "new",
            forKey: "stuck",
            options: PutOptions(
                expires: .seconds(10),
                onAccess: .renew,
                staleFor: .seconds(100),
                writing: .behind
            )
        )
        waitUntil("it is stuck") { valve.taken.withLock { $0 } > 0 }
        return (fixture, valve)
    }

    @Test func `a get that cannot determine the current value within a second is a miss`() throws {
        let (fixture, valve) = try stuckFixture()
        defer { valve.open() }
        let cache = fixture.cache
        let pending = write("key", "\"mine\"")
        // Simulates a put in progress at an unknown generation, so that later writes of other processes go undetected.
        pending.noteWriting(at: nil)
        #expect(cache.writeBehind.put(pending))
        let misses = cache.directory.activity.misses
        onThreads(2) { thread in
            do {
                let hit =
                    thread == 0
                    ? try cache.get(forKey: "key")?.value.count
                    : try cache.typed(String.self).get(forKey: "key")?.value.count
                #expect(hit == nil)
            } catch {
                Issue.record(error)
            }
        }
        #expect(cache.directory.activity.misses == misses + 2)
    }

    @Test func `computations that wait for a put do not delay reads`() async throws {
        let (fixture, valve) = try stuckFixture()
        let cache = fixture.cache
        fixture.clock.advance(by: 20)
        let options = ReadOptions(staleWhileRevalidate: .seconds(100))
        // As many as there are read threads. Whether the value can still be used is known once its put has ended.
        let computing = (0..<16).map { _ in
            Task { await cache.value(forKey: "stuck", reading: options) { Data("newer".utf8) } }
        }
        while cache.directory.activity.staleHits < 16 { try await Task.sleep(for: .milliseconds(1)) }
        for _ in 0..<100 { #expect(try await cache.entry(forKey: "absent") == nil) }
        valve.open()
        for task in computing { #expect(await task.value == Data("new".utf8)) }
    }

    @Test func `an asynchronous get of a pending value counts as one memory hit`() async throws {
        let (fixture, valve) = try stuckFixture()
        defer { valve.open() }
        let cache = fixture.cache
        try await cache.put(Data("\"pending\"".utf8), forKey: "key", options: PutOptions(writing: .behind))
        let hits = cache.directory.activity.memoryHits
        #expect(try await cache.typed(String.self).get(forKey: "key")?.value == "pending")
        #expect(cache.directory.activity.memoryHits == hits + 1)
        #expect(try await cache.get(forKey: "key")?.value == Data("\"pending\"".utf8))
        #expect(cache.directory.activity.memoryHits == hits + 2)
    }

    @Test func `a typed get returns the pending value, not an older one in memory`() async throws {
        let (fixture, valve) = try stuckFixture()
        defer { valve.open() }
        let view = fixture.cache.typed(String.self)
        try await view.put("old", forKey: "key")
        #expect(try await view.get(forKey: "key")?.value == "old")
        try await view.put("pending", forKey: "key", options: PutOptions(writing: .behind))
        #expect(try await view.get(forKey: "key")?.value == "pending")
    }

    /// Strings as UTF-8; counts how often it encodes.
    private final class CountingCodec: CacheCodec {
        let encodings = Locked(0)

        func encode(_ value: String) -> Data {
            encodings.withLock { $0 += 1 }
            return Data(value.utf8)
        }

        func decode(_ data: Data) -> String { String(decoding: data, as: UTF8.self) }
    }

    @Test(arguments: [1, 1000]) func `a put encodes its value once, also if the queue can't take it`(
        length: Int
    ) throws {
        let fixture = try CacheFixture {
            $0.memory = CacheConfiguration.Memory()
            $0.writing = .behind
            $0.writeBehind.size = .bytes(100)
        }
        let codec = CountingCodec()
        let view = fixture.cache.typed(by: codec)
        let value = String(repeating: "v", count: length)
        try view.put(value, forKey: "key")
        #expect(fixture.cache.flush())
        #expect(codec.encodings.withLock { $0 } == 1)
        #expect(try view.get(forKey: "key")?.value == value)
    }

    @Test func `another process sees a put once it is flushed`() throws {
        let fixture = try fixture()
        try fixture.cache.put("value", forKey: "key", options: PutOptions(expires: .days(1)))
        #expect(fixture.cache.flush())
        let other = try SharedCache(at: fixture.cache.path, configuration: fixture.cache.configuration)
        let hit = try #require(try other.get(forKey: "key"))
        #expect(hit.source == .disk)
        #expect(hit.entry.expires == fixture.clock.now + 86_400)
        #expect(hit.entry.digest == Digest(of: Data("value".utf8)))
    }

    @Test func `an expired pending value is a miss even if an older value is on disk`() throws {
        let fixture = try CacheFixture { $0.memory = CacheConfiguration.Memory() }
        try fixture.cache.put("old", forKey: "key")
        try fixture.cache.put(
            "new",
            forKey: "key",
            options: PutOptions(expires: .seconds(0), writing: .behind)
        )
        #expect(try fixture.text("key") == nil)
        #expect(fixture.cache.flush())
        #expect(try fixture.text("key") == nil)
    }

    @Test func `a put with an invalid key or expiration throws before it is queued`() throws {
        let cache = try fixture().cache
        #expect(code { try cache.put("x", forKey: "") } == .invalidArgument)
        #expect(
            code { try cache.put("x", forKey: "k", options: PutOptions(expires: .seconds(-1))) }
                == .invalidArgument
        )
    }

    @Test func `a publication failure is reported as an event, and the value is dropped`() async throws {
        let failures = Locked<[String]>([])
        let fixture = try CacheFixture {
            $0.onEvent = { event in
                if case .publishFailed(let key, _) = event { failures.withLock { $0.append(key) } }
            }
        }
        let stream = fixture.cache.events
        let metadata = ["long": String(repeating: "x", count: 70_000)]
        try await fixture.cache.put(
            "x",
            forKey: "key",
            options: PutOptions(metadata: metadata, writing: .behind)
        )
        #expect(await fixture.cache.flush())
        #expect(failures.withLock { $0 } == ["key"])
        #expect(try fixture.text("key") == nil)
        for await event in stream {
            guard case .publishFailed(let key, let error) = event else { continue }
            #expect(key == "key")
            #expect(error.code == .invalidArgument)
            break
        }
    }

    @Test func `pending puts are published after their cache is released`() throws {
        let directory = try TemporaryDirectory()
        var configuration = CacheConfiguration()
        configuration.writing = .behind
        do {
            let cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
            for index in 0..<100 { try cache.put("value", forKey: "key \(index)") }
        }
        let other = try SharedCache(at: directory.path + "/cache")
        try waitUntil("all are published") {
            try (0..<100).allSatisfy { try other.get(forKey: "key \($0)") != nil }
        }
    }

    @Test func `closing publishes pending puts`() throws {
        let fixture = try fixture()
        for index in 0..<100 { try fixture.cache.put("value", forKey: "key \(index)") }
        #expect(fixture.cache.close().isComplete)
        let other = try SharedCache(at: fixture.cache.path)
        for index in 0..<100 { #expect(try other.get(forKey: "key \(index)") != nil) }
    }

    @Test func `a crash loses only queued puts`() async throws {
        let directory = try TemporaryDirectory()
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = directory.path as String] in
            var configuration = CacheConfiguration()
            configuration.writing = .behind
            let cache = try SharedCache(at: path + "/cache", configuration: configuration)
            try await cache.put("kept", forKey: "before")
            await cache.flush()
            for round in 0..<20 {
                for index in 0..<200 { try await cache.put("value \(round)", forKey: "key \(index)") }
            }
            kill(getpid(), SIGKILL)
        }
        let cache = try await SharedCache.open(at: directory.path + "/cache")
        #expect(try await cache.get(forKey: "before")?.value == Data("kept".utf8))
        let valid = Set((0..<20).map { Data("value \($0)".utf8) })
        for index in 0..<200 {
            guard let hit = try await cache.get(forKey: "key \(index)") else { continue }
            #expect(valid.contains(hit.value))
        }
        #expect(try await cache.blocking { try $0.directory.verify().corruptObjects }.isEmpty)
    }
}
