// SPDX-License-Identifier: Apache-2.0

/// Servers, each of which answers one request after the other.
struct SimulatedServers {
    /// What they had to do.
    struct Load: Sendable {
        /// Requests to each, those that it did not answer included.
        var requests: [Int] = []
        /// The most that one of them had in a second.
        var busiestSecond = 0

        var total: Int { requests.reduce(0, +) }
    }

    /// How long an answer takes, with the way there and back; infinite where none comes.
    ///
    /// An error is one, too.
    struct Answer {
        let wait: Double
        let isError: Bool
    }

    private let terms: SimulationTerms
    private(set) var load = Load()
    private var freeAt: [Double]
    /// For each server, the present second and its requests so far.
    private var seconds: [(number: Int, count: Int)]

    init(_ terms: SimulationTerms) {
        self.terms = terms
        freeAt = Array(repeating: 0, count: terms.servers)
        seconds = Array(repeating: (0, 0), count: terms.servers)
        load.requests = Array(repeating: 0, count: terms.servers)
    }

    /// A request; times must not go back.
    mutating func ask(_ server: Int, at now: Double) -> Answer {
        note(server, at: now)
        let isTroubled = terms.isTroubled(server, at: now)
        if isTroubled, terms.trouble == .dead { return Answer(wait: .infinity, isError: false) }
        if isTroubled, terms.trouble == .refusing { return Answer(wait: terms.roundTrip, isError: true) }
        let start = max(freeAt[server], now)
        // Who gives up is gone from the queue before it is his turn.
        guard start - now < terms.budget else { return Answer(wait: .infinity, isError: false) }
        let isSlow = isTroubled && terms.trouble == .slow
        freeAt[server] = start + (isSlow ? terms.slowService : terms.service)
        return Answer(wait: freeAt[server] - now + terms.roundTrip, isError: false)
    }

    private mutating func note(_ server: Int, at now: Double) {
        load.requests[server] += 1
        let number = Int(now / 1_000)
        if seconds[server].number != number { seconds[server] = (number, 0) }
        seconds[server].count += 1
        load.busiestSecond = max(load.busiestSecond, seconds[server].count)
    }
}
