// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// A way in which a cache cannot look up or store values.
enum BrokenCache: String, CaseIterable, CustomTestStringConvertible {
    case closed, vanished, withoutLocks, withoutEntries, emptyKey, senselessExpiration, longMetadata

    var testDescription: String { rawValue }

    var key: String { self == .emptyKey ? "" : "key" }
    var options: PutOptions {
        PutOptions(
            expires: self == .senselessExpiration ? .seconds(-1) : nil,
            metadata: self == .longMetadata ? ["a": String(repeating: "x", count: 70_000)] : [:]
        )
    }

    func breakCache(_ fixture: ComputeFixture) throws {
        let path = fixture.directory.path + "/cache"
        switch self {
        case .closed: fixture.cache.close()
        case .vanished: try FileManager.default.removeItem(atPath: path)
        case .withoutLocks: try FileManager.default.removeItem(atPath: path + "/locks")
        case .withoutEntries:
            try FileManager.default.removeItem(atPath: path + "/entries")
            makeFile(path + "/entries")
        case .emptyKey, .senselessExpiration, .longMetadata: break
        }
    }
}

@Suite(.takesTurns) struct ComputeFailingCacheTests {
    let fixture: ComputeFixture
    var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try ComputeFixture()
    }

    @Test(arguments: BrokenCache.allCases)
    func `a broken cache still computes a value, once per process`(_ broken: BrokenCache) async throws {
        try broken.breakCache(fixture)
        let cache = cache
        let gate = Gate()
        let tasks = (0..<10).map { _ in
            Task { [fixture] in
                await cache.value(
                    forKey: broken.key,
                    options: broken.options,
                    orCompute: fixture.compute("one", gate)
                ).text
            }
        }
        try await eventually("one computes, the others wait") {
            gate.count == 1 && cache.flights.inProgress.waiting == 9
        }
        gate.open()
        for task in tasks { #expect(await task.value == "one") }
        #expect(fixture.count == 1)
        #expect(cache.counters[.cacheFailure] > 0)
        #expect(cache.flights.inProgress == (0, 0))
        #expect(fixture.lockDescriptors.isEmpty)
        let again = await offload { [fixture] in
            cache.value(
                forKey: broken.key,
                options: broken.options,
                orCompute: fixture.computeBlocking("two")
            )
        }
        #expect(again.text == "two", "nothing was kept")
    }

    @Test(.enabled(if: geteuid() != 0, "root may write everywhere"))
    func `values are computed without write permission`() async throws {
        let path = fixture.directory.path + "/cache"
        for part in ["/entries", "/objects", "/locks"] { #expect(chmod(path + part, 0o500) == 0) }
        defer { for part in ["/entries", "/objects", "/locks"] { #expect(chmod(path + part, 0o700) == 0) } }
        #expect(await cache.value(forKey: "key", orCompute: fixture.compute("one")).text == "one")
        #expect(await cache.value(forKey: "key", orCompute: fixture.compute("two")).text == "two")
    }

    @Test func `if nothing can be stored, waiters in other processes compute concurrently`()
        async throws
    {
        let caches = try (0..<4).map { _ in try fixture.other() }
        let cache = cache
        let gates = [Gate(), Gate()]
        let long = PutOptions(metadata: ["a": String(repeating: "x", count: 70_000)])
        let first = Task { [fixture] in
            await cache.value(forKey: "key", options: long, orCompute: fixture.compute("one", gates[0]))
                .text
        }
        try await eventually("it computes") { gates[0].count == 1 }
        let tasks = caches.map { cache in
            Task { [fixture] in
                await cache.value(
                    forKey: "key",
                    options: long,
                    orCompute: fixture.compute("two", gates[1])
                ).text
            }
        }
        try await eventually("all wait") { caches.allSatisfy { $0.counters[.wait] == 1 } }
        gates[0].open()
        #expect(await first.value == "one")
        try await eventually("all compute at the same time") { gates[1].count == 4 }
        gates[1].open()
        for task in tasks { #expect(await task.value == "two") }
        #expect(fixture.count == 5)
        for cache in caches { fixture.expectNothingLeft(cache) }
    }

    @Test func `if the leader's cache is closed, exactly one waiter computes`() async throws {
        let caches = try (0..<4).map { _ in try fixture.other() }
        let cache = cache
        let gates = [Gate(), Gate()]
        let first = Task { [fixture] in
            await cache.value(forKey: "key", orCompute: fixture.compute("one", gates[0])).text
        }
        try await eventually("it computes") { gates[0].count == 1 }
        let tasks = caches.map { cache in
            Task { [fixture] in
                await cache.value(forKey: "key", orCompute: fixture.compute("two", gates[1])).text
            }
        }
        try await eventually("all wait") { caches.allSatisfy { $0.counters[.wait] == 1 } }
        await cache.close()
        gates[0].open()
        #expect(await first.value == "one")
        try await eventually("one of them computes") { gates[1].count >= 1 }
        gates[1].open()
        for task in tasks { #expect(await task.value == "two") }
        #expect(fixture.count == 2)
        for cache in caches { fixture.expectNothingLeft(cache) }
    }
}
