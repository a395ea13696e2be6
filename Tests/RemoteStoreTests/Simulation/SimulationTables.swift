// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The tables of the article RemoteStores.md.
enum SimulationTables {
    /// A fleet of machines: the larger it is, the fewer requests each machine sends, and the shorter the simulation.
    struct Fleet: Sendable {
        let machines: Int
        let servers: Int
        let minutes: Double
        /// The number of requests per machine.
        let requestsPerMinute: Double

        static let small = Fleet(machines: 10, servers: 1, minutes: 10, requestsPerMinute: 300)
        static let middle = Fleet(machines: 1_000, servers: 4, minutes: 3, requestsPerMinute: 120)
        static let large = Fleet(machines: 100_000, servers: 64, minutes: 1, requestsPerMinute: 30)

        var terms: SimulationTerms {
            var terms = SimulationTerms()
            (terms.machines, terms.servers, terms.minutes) = (machines, servers, minutes)
            terms.requestsPerMinute = requestsPerMinute
            return terms
        }

        var name: String {
            "\(number(machines)) machines, " + (servers == 1 ? "a server" : "\(servers) servers")
        }
    }

    static let loadHead = [
        "| | gets a second | from disk | joined | from servers | computed | requests a second "
            + "| busiest server's busiest second | without one flight |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]

    /// Returns a row with the servers' load, and what single-flight per machine saves them.
    static func load(_ fleet: Fleet) -> String {
        let outcome = RemoteSimulation.run(fleet.terms)
        var apart = fleet.terms
        apart.isSingleFlight = false
        let without = RemoteSimulation.run(apart).load.total
        let gets = Double(fleet.terms.requests * fleet.terms.callers)
        let cells = [
            fleet.name, number(Int(gets / fleet.minutes / 60)), percent(Double(outcome.diskHits) / gets),
            percent(Double(outcome.joined) / gets), percent(Double(outcome.remoteHits) / gets),
            percent(Double(outcome.computations) / gets),
            number(Int(Double(outcome.load.total) / fleet.minutes / 60)), number(outcome.load.busiestSecond),
            "\(tenths(Double(without) / Double(max(1, outcome.load.total)))) × as many",
        ]
        return row(cells)
    }

    static let troubleHead = [
        "| a third of the time | breakers | in vain | waited in vain | not asked | computed "
            + "| p50 | p95 | p99 | requests to it |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]

    /// Returns a row with the cost of a server in trouble, with or without breakers.
    static func trouble(_ fleet: Fleet, _ trouble: SimulationTerms.Trouble, hasBreaker: Bool) -> String {
        var terms = fleet.terms
        (terms.trouble, terms.hasBreaker) = (trouble, hasBreaker)
        let outcome = RemoteSimulation.run(terms)
        let lost = Double(outcome.faults) * (trouble == .refusing ? terms.roundTrip : terms.budget) / 1_000
        let cells = [
            "\(fleet.name), one \(trouble.rawValue)", hasBreaker ? "yes" : "no", number(outcome.faults),
            "\(number(Int(lost))) s", number(outcome.skipped), number(outcome.computations),
            milliseconds(outcome.wait(0.5)), milliseconds(outcome.wait(0.95)),
            milliseconds(outcome.wait(0.99)), number(outcome.load.requests[0]),
        ]
        return row(cells)
    }

    /// Returns the lines of both tables for these fleets.
    static func all(_ fleets: [Fleet]) -> [String] {
        var lines = loadHead + fleets.map(load) + [""] + troubleHead
        for fleet in fleets {
            for trouble in SimulationTerms.Trouble.allCases where trouble != .none {
                for hasBreaker in [false, true] {
                    lines.append(Self.trouble(fleet, trouble, hasBreaker: hasBreaker))
                }
            }
        }
        return lines
    }

    // MARK: The article

    static let begin =
        "<!-- simulation: written by DISKCACHE_TABLES=1 swift test --filter RemoteSimulationTests -->"
    static let end = "<!-- end -->"

    static let article = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .appendingPathComponent("Sources/DiskCache/DiskCache.docc/RemoteStores.md")

    /// Replaces the text between the markers in the article.
    static func write(_ lines: [String]) throws {
        let text = try String(contentsOf: article, encoding: .utf8)
        guard let start = text.range(of: begin + "\n"), let stop = text.range(of: end),
            start.upperBound <= stop.lowerBound
        else { throw CocoaError(.fileReadCorruptFile) }
        let written =
            "\(text[..<start.upperBound])\(lines.joined(separator: "\n"))\n\(text[stop.lowerBound...])"
        try written.write(to: article, atomically: true, encoding: .utf8)
    }

    // MARK: Cells

    private static func row(_ cells: [String]) -> String {
        "| " + cells.joined(separator: " | ") + " |"
    }

    /// Returns the number with commas between thousands.
    private static func number(_ value: Int) -> String {
        var digits = Array(String(value))
        var place = digits.count - 3
        while place > 0 {
            digits.insert(",", at: place)
            place -= 3
        }
        return String(digits)
    }

    private static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(number(tenths / 10)).\(tenths % 10)"
    }

    private static func percent(_ share: Double) -> String { tenths(share * 100) + " %" }

    private static func milliseconds(_ value: Double) -> String { tenths(value) + " ms" }
}
