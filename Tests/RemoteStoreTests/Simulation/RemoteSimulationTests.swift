// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@Suite("A fleet of machines and shared servers, simulated", .takesTurns)
struct RemoteSimulationTests {
    typealias Terms = SimulationTerms

    /// Runs a small simulation in which few gets are hits on disk, so that the servers matter.
    private func run(_ change: (inout Terms) -> Void = { _ in }) -> SimulationOutcome {
        var terms = Terms()
        (terms.machines, terms.servers, terms.minutes) = (10, 4, 10)
        (terms.requestsPerMinute, terms.exponent) = (120, 0.5)
        change(&terms)
        return RemoteSimulation.run(terms)
    }

    /// The kinds of trouble in which a server gives no answer in time.
    private static let silent = [Terms.Trouble.slow, .dead]

    @Test("each get is counted as exactly one outcome")
    func sums() {
        for trouble in Terms.Trouble.allCases {
            let outcome = run { $0.trouble = trouble }
            #expect(outcome.diskHits + outcome.joined + outcome.misses == 12_000 * 4)
            #expect(outcome.load.total + outcome.skipped == outcome.misses)
            #expect(outcome.waits.count == outcome.misses)
        }
    }

    @Test("no get waits longer than its limit", arguments: Terms.Trouble.allCases)
    func budget(_ trouble: Terms.Trouble) {
        for hasBreaker in [true, false] {
            let outcome = run {
                $0.trouble = trouble
                $0.hasBreaker = hasBreaker
            }
            #expect(outcome.wait(1) <= 250)
        }
    }

    @Test(
        "with breakers few gets wait for a server that does not answer",
        arguments: [Terms.Trouble.dead, .refusing]
    )
    func breaker(_ trouble: Terms.Trouble) {
        let (with, without) = (
            run { $0.trouble = trouble },
            run {
                $0.trouble = trouble
                $0.hasBreaker = false
            }
        )
        #expect(with.faults * 2 < without.faults, "\(with.faults) of \(without.faults)")
        #expect(with.skipped > 0 && without.skipped == 0)
        #expect(with.load.requests[0] < without.load.requests[0])
    }

    @Test("a slow server gets no more requests than it can answer")
    func overload() {
        // The server gets up to 200 requests a second, of which it can answer 100.
        func outcome(_ hasBreaker: Bool) -> SimulationOutcome {
            run {
                ($0.machines, $0.servers, $0.minutes) = (100, 1, 1)
                $0.trouble = .slow
                $0.hasBreaker = hasBreaker
            }
        }
        let (with, without) = (outcome(true), outcome(false))
        #expect(with.faults * 2 < without.faults, "\(with.faults) of \(without.faults)")
    }

    @Test("a faulty server affects only its own share of the keys", arguments: silent)
    func share(_ trouble: Terms.Trouble) {
        let (well, ill) = (run(), run { $0.trouble = trouble })
        // A quarter of the keys for a third of the time, which is 1/12, with a margin for chance.
        #expect(ill.computations - well.computations < well.misses / 8)
        #expect(ill.computations >= well.computations)
    }

    @Test("one flight per machine saves requests and computations")
    func singleFlight() {
        let (with, without) = (run(), run { $0.isSingleFlight = false })
        #expect(with.joined > 0 && without.joined == 0)
        #expect(without.load.total > 3 * with.load.total)
        #expect(without.computations > 3 * with.computations)
    }

    @Test("values computed by one machine reach the others")
    func reach() {
        let outcome = run {
            ($0.machines, $0.exponent) = (200, 1)
            $0.minutes = 1
        }
        #expect(outcome.remoteHits > outcome.computations)
        #expect(outcome.load.requests.allSatisfy { $0 > 0 })
    }

    @Test("equal seeds give equal results, different seeds different ones")
    func repetition() {
        func hits(_ seed: UInt64) -> [Int] {
            let outcome = run { $0.seed = seed }
            return [outcome.diskHits, outcome.joined, outcome.remoteHits]
        }
        #expect(hits(1) == hits(1))
        #expect(hits(1) != hits(2))
    }

    private static let writesTables = ProcessInfo.processInfo.environment["DISKCACHE_TABLES"] != nil

    @Test("the article contains the current tables", .enabled(if: !writesTables))
    func article() throws {
        let article = try String(contentsOf: SimulationTables.article, encoding: .utf8)
        for line in SimulationTables.all([.small]) where !line.isEmpty && !article.contains(line) {
            Issue.record("not in RemoteStores.md: \(line)\n\(SimulationTables.begin)")
        }
    }

    @Test("the article's tables are rewritten", .enabled(if: writesTables, "only with DISKCACHE_TABLES=1"))
    func tables() throws {
        let lines = SimulationTables.all([.small, .middle, .large])
        print(lines.joined(separator: "\n"))
        try SimulationTables.write(lines)
    }
}
