// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
import Probes
import TestSupport
import Testing

@testable import DiskCacheCommand

/// Tests that the leftovers of processes that are all killed at once, repeatedly, are found and removed.
@Suite(.serialized, .takesTurns)
struct KillTests {
    private let place: TemporaryDirectory
    private let cache: SharedCache
    private let seed = UInt64.random(in: 0...UInt64(Int.max))

    init() throws {
        place = try TemporaryDirectory()
        // This cache holds no lock, and leaves the sweeps to the crew.
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.janitor.joinsSession = false
        cache = try SharedCache(at: place.path + "/cache", configuration: configuration)
    }

    private var rounds: Int { isSoak ? 200 : 10 }

    @Test
    func `killing all processes repeatedly leaves no lock, no flight file, no leftover, no bad byte`() throws
    {
        let crew = try WorkerCrew(on: cache.path, environment: [:], seed: seed)
        let roles: [WorkerRole] = [.flights, .flights, .writer, .reader, .collector]
        var generator = SplitMix64(seed: seed)
        for round in 1...rounds {
            try crew.start(roles)
            while !crew.isAtWork && crew.crashes.isEmpty { usleep(1000) }
            usleep(.random(in: 0...50_000, using: &generator))
            try crew.killAll()
            try #require(crew.crashes.isEmpty)
            #expect(try heldLocks().isEmpty)
            if round % 10 == 0 { try expectClean() }
        }
        try expectClean()
        let history = try crew.history()
        print("\(history), \(crew.kills) kills, seed \(seed)")
        #expect(crew.kills == rounds * roles.count)
        #expect(history.damaged == 0 && history.replacedTwice.isEmpty, "seed \(seed)")
        #expect(history.pending > 0, "some were killed while they wrote")
        #expect(history.flights > 0)
        let violations = history.violations
        #expect(violations.isEmpty, "seed \(seed): \(violations.prefix(5))")
    }

    /// Returns the lock files that can't be locked exclusively at once.
    private func heldLocks() throws -> [String] {
        let directory = cache.path + "/locks"
        return try FileManager.default.contentsOfDirectory(atPath: directory).filter { name in
            let number = open(directory + "/" + name, O_RDWR | O_CLOEXEC)
            defer { close(number) }
            return flock(number, LOCK_EX | LOCK_NB) != 0
        }
    }

    /// Checks that one collection removes all leftovers of killed processes.
    private func expectClean() throws {
        let report = try cache.directory.collect()
        #expect(report.skippedStripes.isEmpty)
        let locks = try FileManager.default.contentsOfDirectory(atPath: cache.path + "/locks")
        #expect(locks.filter { $0.hasPrefix("flight-") }.isEmpty)
        try DirectoryAudit(of: cache.path).expectNoLeftovers(cache)
        let verified = try cache.directory.verify()
        #expect(verified.isClean && verified.orphans == 0 && verified.unfinishedEntries == 0)
        try expectCountersTrue()
    }

    /// Compares the usage in the control file with a count.
    private func expectCountersTrue() throws {
        let usage = try #require(try Store(at: cache.path).control.usage)
        #expect(usage.isCounted)
        let counted = try cache.directory.statistics()
        let bytes = Double(counted.entryBytes + counted.objectBytes)
        #expect(abs(Double(usage.bytes) - bytes) <= bytes / 100)
        #expect(abs(Double(usage.entries) - Double(counted.entries)) <= Double(counted.entries) / 100)
    }
}
