// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

/// The tier between the disk and a computation, which other machines share.
@Suite(.takesTurns) struct RemoteTierTests {
    let directory: TemporaryDirectory
    let tier = FakeTier()
    let cache: SharedCache

    init() throws {
        directory = try TemporaryDirectory()
        cache = try tier.cache(in: directory.path + "/cache")
    }

    private func text(_ hit: CacheHit<Data>?) -> String? {
        hit.map { String(decoding: $0.value, as: UTF8.self) }
    }

    @Test func `a get fetches another machine's value once and then finds it on this machine`() throws {
        tier.set("theirs", "key")
        let hit = try #require(try cache.get(forKey: "key"))
        #expect(text(hit) == "theirs" && hit.source == .remote)
        #expect(try cache.get(forKey: "key")?.source == .memory)
        let other = try SharedCache(at: directory.path + "/cache")
        #expect(try text(other.get(forKey: "key")) == "theirs", "it is on disk")
        #expect(tier.lookCount == 1)
        let activity = cache.directory.activity
        #expect(activity.remoteHits == 1 && activity.misses == 1)
    }

    @Test func `a get with a prefix or tag condition returns and stores no other remote value`() throws {
        tier.set("1", "a/1", tags: ["t"])
        tier.set("2", "a/2", tags: ["u"])
        tier.set("3", "b", tags: ["t"])
        #expect(try cache.get(forKey: "a/2", sharedIf: .tagged("t")) == nil)
        #expect(try cache.get(forKey: "b", sharedIf: .prefix("a/")) == nil)
        #expect(
            try cache.entry(forKey: "a/2") == nil && cache.entry(forKey: "b") == nil,
            "nothing was stored"
        )
        #expect(try text(cache.get(forKey: "a/1", sharedIf: .tagged("t"))) == "1")
        #expect(try text(cache.get(forKey: "a/2", sharedIf: .prefix("a/"))) == "2")
        #expect(try text(cache.get(forKey: "b", sharedIf: .all)) == "3")
        #expect(
            try text(cache.get(forKey: "a/1", sharedIf: .prefix("b"))) == "1",
            "what is here was taken before"
        )
    }

    @Test(arguments: [false, true])
    func `nonblocking calls for many keys that wait for the tier do not delay disk reads`(computes: Bool)
        async throws
    {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.memory = .none
        try await cache.put(Data("here".utf8), forKey: "here")
        let gate = Monitored(false)
        defer {
            gate.withLock { $0 = true }
            gate.wakeAll()
        }
        tier.onLook { _ = gate.wait { $0 ? true : nil } }
        let cache = cache
        // More tasks than threads for reading.
        let tasks = (0..<20).map { number in
            Task {
                let keys = ["here", "absent \(number)"]
                if computes {
                    let reading = ReadOptions(source: .cache)
                    return try await cache.values(forKeys: keys, reading: reading) { _ in [:] }.count
                }
                return try await cache.get(forKeys: keys).count
            }
        }
        await waitUntil("all are asking") { tier.lookCount == 20 }
        try #require(tier.lookCount == 20)
        let other = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        #expect(try await other.get(forKey: "here")?.source == .disk)
        gate.withLock { $0 = true }
        gate.wakeAll()
        for task in tasks { #expect(try await task.value == 1) }
    }

    @Test func `asynchronous gets of bytes, typed values, files and chunks ask the tier`() async throws {
        tier.set("1", "a")
        tier.set("2", "b")
        tier.set("3", "c")
        #expect(try await text(cache.get(forKey: "a")) == "1")
        #expect(try await cache.get(forKey: "none") == nil)
        #expect(try await cache.namespace("").typed(Int.self).get(forKey: "b")?.value == 2)
        let path = directory.path + "/copy"
        #expect(try await cache.copyValue(forKey: "c", toFile: path) != nil)
        #expect(FileManager.default.contents(atPath: path) == Data("3".utf8))
        tier.set("4", "d")
        var read = Data()
        for try await chunk in try #require(try await cache.chunks(forKey: "d")) { read += chunk }
        #expect(read == Data("4".utf8))
    }

    @Test func `local hits and calls that read only local data do not ask the tier`() throws {
        try cache.put("ours", forKey: "key")
        #expect(try text(cache.get(forKey: "key")) == "ours")
        #expect(try cache.get(forKey: "absent", reading: ReadOptions(source: .memory)) == nil)
        #expect(try cache.entry(forKey: "absent") == nil)
        #expect(try cache.contains(forKey: "absent") == false)
        #expect(tier.lookCount == 0)
    }

    @Test func `a value is computed only if the tier does not have it`() throws {
        tier.set("theirs", "key")
        let found = cache.value(forKey: "key") { Data("computed".utf8) }
        #expect(found == Data("theirs".utf8))
        #expect(cache.value(forKey: "other") { Data("computed".utf8) } == Data("computed".utf8))
        #expect(tier.lookCount == 2, "once a call")
        let activity = cache.directory.activity
        #expect(activity.computations == 1)
    }

    @Test func `a remote hit reports its source, and a cache-only read computes nothing`() throws {
        tier.set("theirs", "key")
        let reading = ReadOptions(source: .cache)
        let hit = try cache.hit(forKey: "key", reading: reading) { _ in .value(Data()) }
        #expect(hit?.source == .remote)
        #expect(try cache.hit(forKey: "none", reading: reading) { _ in .value(Data()) } == nil)
    }

    @Test func `a recomputation does not ask the tier`() throws {
        tier.set("theirs", "key")
        let reading = ReadOptions(recomputes: true)
        let value = cache.value(forKey: "key", reading: reading) { Data("computed".utf8) }
        #expect(value == Data("computed".utf8))
        #expect(tier.lookCount == 0)
    }

    @Test func `calls for many keys find remote values and compute only the missing ones`() throws {
        for key in ["a", "b"] { tier.set(key, key) }
        let hits = try cache.get(forKeys: ["a", "b", "c"])
        #expect(hits.mapValues { text($0) } == ["a": "a", "b": "b"])
        tier.set("d", "d")
        let values = try cache.values(forKeys: ["d", "e"]) { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, Data("computed".utf8)) })
        }
        #expect(values == ["d": Data("d".utf8), "e": Data("computed".utf8)])
    }

    @Test func `concurrent gets of one key by several threads ask the tier once`() throws {
        tier.set("theirs", "key")
        let (cache, tier) = (cache, tier)
        let begun = Atomic<Int>(0)
        // The thread that asks waits until all others have started.
        tier.onLook { waitUntil("all have begun") { begun.load(ordering: .relaxed) == 8 } }
        let found = Atomic<Int>(0)
        onThreads(8) { _ in
            begun.add(1, ordering: .relaxed)
            if (try? cache.get(forKey: "key")) != nil { found.add(1, ordering: .relaxed) }
        }
        #expect(found.load(ordering: .relaxed) == 8)
        #expect(tier.lookCount == 1)
    }

    @Test func `concurrent gets of one key by two processes ask the tier once`() throws {
        tier.set("theirs", "key")
        // A second cache on the directory acts as another process to the kernel's locks.
        let second = FakeTier()
        second.set("theirs", "key")
        let other = try second.cache(in: directory.path + "/cache")
        let isAsked = Atomic<Bool>(false)
        let mayGoOn = DispatchSemaphore(value: 0)
        tier.onLook {
            isAsked.store(true, ordering: .relaxed)
            mayGoOn.wait()
        }
        let cache = cache
        onThreads(2) { index in
            if index == 0 {
                #expect((try? cache.get(forKey: "key")) != nil)
                return
            }
            waitUntil("the other one asks") { isAsked.load(ordering: .relaxed) }
            // A third thread releases the first once this one has had time to find the lock held. The test passes
            // even if it has not.
            DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) { mayGoOn.signal() }
            #expect((try? other.get(forKey: "key")) != nil)
        }
        #expect(tier.lookCount + second.lookCount == 1)
    }

    @Test func `a removal during a remote lookup wins`() throws {
        tier.set("theirs", "key")
        let other = try SharedCache(at: directory.path + "/cache")
        tier.onLook { _ = try? other.remove(forKey: "key") }
        #expect(try cache.get(forKey: "key") == nil)
        #expect(try other.get(forKey: "key") == nil, "it is not on disk either")
    }

    @Test func `a removal during a leader's remote lookup wins, and the value is computed`() throws {
        tier.set("theirs", "key")
        let other = try SharedCache(at: directory.path + "/cache")
        tier.onLook { _ = try? other.remove(forKey: "key") }
        let value = cache.value(forKey: "key") { Data("computed".utf8) }
        #expect(value == Data("computed".utf8))
    }

    @Test func `a get returns the value that is put during its remote lookup`() throws {
        tier.set("theirs", "key")
        let other = try SharedCache(at: directory.path + "/cache")
        tier.onLook { _ = try? other.put("ours", forKey: "key") }
        #expect(try text(cache.get(forKey: "key")) == "ours")
    }

    @Test func `a remote value in memory is not returned after it is replaced or removed`() throws {
        tier.set("theirs", "key")
        #expect(try cache.get(forKey: "key") != nil)
        let other = try SharedCache(at: directory.path + "/cache")
        try other.put("ours", forKey: "key")
        #expect(try text(cache.get(forKey: "key")) == "ours")
        tier.setUseful(false)
        try other.remove(forKey: "key")
        #expect(try cache.get(forKey: "key") == nil)
    }

    @Test func `a remote value keeps its expiration`() throws {
        let end = Timestamp.now + .seconds(3600)
        tier.set("theirs", "key", expires: end)
        let hit = try #require(try cache.get(forKey: "key"))
        #expect(hit.entry.expires == end.wholeMilliseconds.date)
        #expect(try cache.entry(forKey: "key")?.expires == end.wholeMilliseconds.date)
    }

    @Test func `a tier that is not worth asking is skipped, and the skip is counted`() throws {
        tier.set("theirs", "key")
        tier.setUseful(false)
        #expect(try cache.get(forKey: "key") == nil)
        #expect(tier.lookCount == 0)
        let activity = cache.directory.activity
        #expect(activity.remoteSkips == 1 && activity.misses == 1)
    }

    @Test func `a tier with a time limit of zero is not asked`() throws {
        let tier = FakeTier(limit: .zero)
        let cache = try tier.cache(in: directory.path + "/other")
        tier.set("theirs", "key")
        #expect(try cache.get(forKey: "key") == nil)
        #expect(cache.value(forKey: "key") { Data("computed".utf8) } == Data("computed".utf8))
        #expect(tier.lookCount == 0)
    }

    @Test func `closing or releasing the cache closes the tier`() throws {
        cache.close()
        #expect(tier.isClosed)
        let second = FakeTier()
        _ = try second.cache(in: directory.path + "/cache")
        waitUntil("it is let go") { second.isClosed }
    }
}
