// SPDX-License-Identifier: Apache-2.0

/// Servers that each answer one request at a time.
struct SimulatedServers {
    /// The load of the servers.
    struct Load: Sendable {
        /// The number of requests to each server, unanswered ones included.
        var requests: [Int] = []
        /// The highest number of requests to one server in a second.
        var busiestSecond = 0

        var total: Int { requests.reduce(0, +) }
    }

    /// An answer, which may be an error, and the time that it takes with the round trip.
    ///
    /// The time is infinite if there is no answer.
    struct Answer {
        let wait: Double
        let isError: Bool
    }

    private let terms: SimulationTerms
    private(set) var load = Load()
    private var freeAt: [Double]
    /// The current second of each server, and its requests so far.
    private var seconds: [(number: Int, count: Int)]

    init(_ terms: SimulationTerms) {
        self.terms = terms
        freeAt = Array(repeating: 0, count: terms.servers)
        seconds = Array(repeating: (0, 0), count: terms.servers)
        load.requests = Array(repeating: 0, count: terms.servers)
    }

    /// Sends a request; times must not decrease.
    mutating func ask(_ server: Int, at now: Double) -> Answer {
        note(server, at: now)
        let isTroubled = terms.isTroubled(server, at: now)
        if isTroubled, terms.trouble == .dead { return Answer(wait: .infinity, isError: false) }
        if isTroubled, terms.trouble == .refusing { return Answer(wait: terms.roundTrip, isError: true) }
        let start = max(freeAt[server], now)
        // A client that gives up leaves the queue before its turn.
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
