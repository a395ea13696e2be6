// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import Probes
import TestSupport
import Testing

@testable import DiskCacheCommand

/// Tests that the operations on each key are linearizable, with several processes, warm memory tiers, writers, kills and
/// evictions.
@Suite(.serialized, .takesTurns)
struct CoherenceTests {
    private let place: TemporaryDirectory
    private let directory: String
    private let seed = UInt64.random(in: 0...UInt64(Int.max))

    init() throws {
        place = try TemporaryDirectory()
        directory = place.path + "/cache"
    }

    /// Runs a crew for the given number of operations, and kills a writer or the collector now and then.
    private func run(
        _ roles: [WorkerRole],
        _ form: Form = .automatic,
        in part: String = "",
        operations: Int,
        checksGenerations: Bool = true
    ) throws -> CrewHistory {
        let crew = try WorkerCrew(on: directory + part, environment: form.program.environment, seed: seed)
        crew.checksGenerations = checksGenerations
        var generator = SplitMix64(seed: seed)
        try crew.start(roles)
        let mortal = roles.indices.filter { roles[$0] == .writer || roles[$0] == .collector }
        while crew.operations < operations && crew.crashes.isEmpty {
            usleep(.random(in: 20_000...120_000, using: &generator))
            if let victim = mortal.randomElement(using: &generator) { try crew.replace(victim) }
        }
        try crew.stop()
        #expect(crew.crashes.isEmpty)
        #expect(mortal.isEmpty || crew.kills > 0, "the test is about kills")
        let history = try crew.history()
        print("\(history), \(crew.kills) kills, \(form), seed \(seed)")
        #expect(history.damaged == 0, "seed \(seed)")
        #expect(history.replacedTwice.isEmpty, "no update is lost; seed \(seed)")
        return history
    }

    private static func size(_ ordinary: Int, soak: Int) -> Int {
        isSoak ? soak : ordinary
    }

    @Test(arguments: Form.allCases)
    func `reads and writes of several processes are linearizable despite kills and evictions`(
        form: Form
    ) throws {
        let operations =
            form == .sidecar ? Self.size(25_000, soak: 500_000) : Self.size(100_000, soak: 1_000_000)
        let history = try run([.reader, .reader, .writer, .writer, .collector], form, operations: operations)
        let violations = history.violations
        #expect(violations.isEmpty, "seed \(seed): \(violations.prefix(5))")
        #expect(history.count >= operations && history.misses < history.count / 10 * 9)
        #expect(history.memoryHits > history.count / 10, "the test is about memory tiers")
    }

    @Test
    func `values that flights compute and share, and puts in the background, are linearizable`() throws {
        let operations = Self.size(20_000, soak: 1_000_000)
        let history = try run([.flights, .flights, .flights, .collector], operations: operations)
        let violations = history.violations
        #expect(violations.isEmpty, "\(violations.count), seed \(seed): \(violations.prefix(5))")
        #expect(history.count + history.earlyReads >= operations)
        #expect(
            history.flights > history.count / 100 && history.shared > history.flights / 50,
            "the test is about values that are shared"
        )
        #expect(history.behind > history.count / 100)
    }

    @Test
    func `the check detects a process that keeps values for a millisecond without validation`() throws {
        try expectViolations([.forgetful, .writer, .writer])
    }

    @Test
    func `the check detects a memory tier that ignores the generations`() throws {
        try expectViolations([.reader, .reader, .writer, .writer], checksGenerations: false)
    }

    /// Checks that the history of these roles is found to violate linearizability.
    ///
    /// A round in which the writers are alone for most of the time shows no violation, which no seed can prevent.
    private func expectViolations(_ roles: [WorkerRole], checksGenerations: Bool = true) throws {
        for round in 0..<40 {
            let history = try run(
                roles,
                in: "-\(round)",
                operations: 40_000,
                checksGenerations: checksGenerations
            )
            if !history.violations.isEmpty { return }
        }
        Issue.record("nothing was found in any round, seed \(seed)")
    }
}
