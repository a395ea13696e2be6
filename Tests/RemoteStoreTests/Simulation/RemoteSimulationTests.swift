// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@Suite("A fleet of machines and shared servers, simulated", .takesTurns)
struct RemoteSimulationTests {
    typealias Terms = RemoteSimulation.Terms
    typealias Outcome = RemoteSimulation.Outcome

    private static let isSoak = ProcessInfo.processInfo.environment["DISKCACHE_SOAK"] != nil
    private static let fleets = isSoak ? [10, 1_000, 100_000] : [10, 1_000]

    private func run(_ machines: Int, _ change: (inout Terms) -> Void = { _ in }) -> Outcome {
        var terms = Terms()
        terms.machines = machines
        // 20 of each machine at least, so that breakers matter.
        terms.requests = Self.isSoak ? max(20_000, machines * 20) : 20_000
        change(&terms)
        var simulation = RemoteSimulation(terms)
        return simulation.run()
    }

    private func row(_ name: String, _ outcome: Outcome) -> String {
        let cells = [
            outcome.diskHits, outcome.joined, outcome.remoteHits, outcome.computations, outcome.faults,
            outcome.skipped, Int(outcome.wait(0.5)), Int(outcome.wait(0.99)), Int(outcome.wait(0.999)),
        ]
        return "| \(name) | " + cells.map(String.init).joined(separator: " | ") + " | \(outcome.load) |"
    }

    @Test("tables")
    func tables() {
        var lines = ["| case | disk | joined | remote | computed | faults | skipped | p50 ms | p99 | p99.9 | load |"]
        for machines in Self.fleets {
            for trouble in [RemoteSimulation.Trouble.none, .slow, .dead] {
                for hasBreaker in [true, false] where trouble != .none || hasBreaker {
                    let outcome = run(machines) {
                        $0.trouble = trouble
                        $0.hasBreaker = hasBreaker
                    }
                    lines.append(
                        row("\(machines) machines, \(trouble), breaker \(hasBreaker ? "on" : "off")", outcome)
                    )
                }
            }
        }
        print(lines.joined(separator: "\n"))
        #expect(lines.count == 1 + 5 * Self.fleets.count)
    }

    @Test("no get waits longer than its limit", arguments: [RemoteSimulation.Trouble.slow, .dead])
    func budget(_ trouble: RemoteSimulation.Trouble) {
        let outcome = run(10) { $0.trouble = trouble }
        #expect(outcome.wait(1) <= 250)
        #expect(outcome.faults > 0)
    }

    @Test("with breakers far fewer gets wait in vain", arguments: [RemoteSimulation.Trouble.slow, .dead])
    func breaker(_ trouble: RemoteSimulation.Trouble) {
        // Few of them are hits on disk, so that the servers matter.
        func faults(_ hasBreaker: Bool) -> Outcome {
            run(10) {
                $0.trouble = trouble
                $0.hasBreaker = hasBreaker
                $0.keys = 20_000
                $0.exponent = 0.5
            }
        }
        let (with, without) = (faults(true), faults(false))
        #expect(with.faults * 3 < without.faults, "\(with.faults) of \(without.faults)")
        #expect(with.skipped > 0 && without.skipped == 0)
    }

    @Test("a server in trouble costs its own share only")
    func share() {
        let (well, dead) = (run(10), run(10) { $0.trouble = .dead })
        let more = dead.computations - well.computations
        #expect(more >= 0)
        // A quarter of the keys for a third of the time; with some room for chance.
        let asked = well.remoteHits + well.computations
        #expect(Double(more) < Double(asked) / 4)
    }

    @Test("one request a key and machine saves computations")
    func singleFlight() {
        let (with, without) = (run(10), run(10) { $0.isSingleFlight = false })
        #expect(with.joined > 0 && without.joined == 0)
        #expect(with.computations < without.computations)
        #expect(with.load.reduce(0, +) < without.load.reduce(0, +))
    }

    @Test("values that one machine has computed the others get")
    func reach() {
        let outcome = run(1_000)
        #expect(outcome.remoteHits > outcome.computations)
        #expect(outcome.load.allSatisfy { $0 > 0 })
    }
}
