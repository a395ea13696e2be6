// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
import Probes
import TestSupport
import Testing

/// Tests that `diskcache gc`, killed at any instant while others work, does no damage, and that the next one completes.
@Suite(.serialized, .takesTurns)
struct CollectorKillTests {
    private let place: TemporaryDirectory
    private let cache: SharedCache
    private let seed = UInt64.random(in: 0...UInt64(Int.max))

    init() throws {
        place = try TemporaryDirectory()
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.janitor.joinsSession = false
        cache = try SharedCache(at: place.path + "/cache", configuration: configuration)
    }

    private var kills: Int { isSoak ? 100 : 4 }

    /// Stores values that no other process touches, some of them expired, so that every collection finds each kind.
    private func fill(_ round: Int) throws {
        for index in 0..<150 {
            let isOld = index.isMultiple(of: 3)
            try cache.put(
                "value \(round) \(index)",
                forKey: "old \(index)",
                options: PutOptions(expires: isOld ? .seconds(0) : .never)
            )
        }
    }

    private func collector() throws -> ChildProcess {
        try ChildProcess(
            starting: BuiltCommand.path,
            ["--dir", cache.path, "gc", "--max-entries", "100", "--json"]
        )
    }

    @Test
    func `gc killed at any instant beside workers leaves no damage, and the next one completes`() throws {
        let crew = try WorkerCrew(on: cache.path, environment: [:], seed: seed)
        try crew.start([.flights, .writer, .reader])
        while !crew.isAtWork && crew.crashes.isEmpty { usleep(1000) }
        var generator = SplitMix64(seed: seed)
        var killed = 0
        // The duration of a collection, from one that is not killed.
        let start = ContinuousClock.now
        var first = try collector()
        let end = try first.wait()
        #expect(end == .exited(0))
        var span = ContinuousClock.now - start
        var round = 0
        while killed < kills {
            round += 1
            try #require(round < 100 * kills, "none lives long enough to be killed")
            try fill(round)
            var victim = try collector()
            usleep(UInt32.random(in: 0...UInt32(span.saturatingNanoseconds / 1000), using: &generator))
            victim.send(.kill)
            // Adapts the range so that some kills come just too late: every instant of a collection is about equally likely.
            if try victim.wait() == .killed(.kill) {
                killed += 1
                span = span * 17 / 16
            } else {
                span = span * 7 / 8
            }
        }
        try crew.stop()
        #expect(crew.crashes.isEmpty)
        try expectClean()
        let history = try crew.history()
        #expect(history.damaged == 0 && history.replacedTwice.isEmpty, "seed \(seed)")
        let violations = history.violations
        #expect(violations.isEmpty, "seed \(seed): \(violations.prefix(5))")
        print("\(history), gc killed \(killed) times in \(round) rounds, seed \(seed)")
    }

    /// Checks that one more collection leaves only entries within the limit, and their objects.
    private func expectClean() throws {
        var last = try collector()
        let end = try last.wait()
        #expect(end == .exited(0))
        try DirectoryAudit(of: cache.path).expectNoLeftovers(cache)
        let verified = try cache.directory.verify()
        #expect(verified.isClean && verified.orphans == 0 && verified.unfinishedEntries == 0)
        let counted = try cache.directory.statistics()
        #expect(counted.entries <= 100 && counted.expiredEntries == 0)
        let usage = try #require(try Store(at: cache.path).control.usage)
        #expect(usage.entries == counted.entries)
        #expect(usage.bytes == counted.entryBytes + counted.objectBytes)
    }
}
