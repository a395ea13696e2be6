// SPDX-License-Identifier: Apache-2.0

/// What is simulated.
///
/// Times are in milliseconds unless it says otherwise.
struct SimulationTerms: Sendable {
    /// What is wrong with the first server, in the middle third of the time.
    enum Trouble: String, Sendable, CaseIterable {
        case none
        /// It works at a two-hundredth of its rate.
        case slow
        /// It takes requests and does not answer, like a process that is stopped.
        case dead
        /// It refuses connections at once.
        case refusing
    }

    var machines = 10
    var servers = 1
    var minutes = 30.0
    /// Of a machine, in a minute; what its processes' memories have is not among them.
    var requestsPerMinute = 20.0
    /// Processes of a machine that want the same at the same time.
    var callers = 4
    var keys = 20_000
    /// Of Zipf's law.
    var exponent = 1.0
    var trouble = Trouble.none
    var hasBreaker = true
    var isSingleFlight = true
    var roundTrip = 1.0
    /// What an answer takes a server, which works on one after the other.
    var service = 0.05
    var slowService = 10.0
    var budget = 250.0
    /// What it takes to make a value.
    var computation = 2_000.0
    var seed: UInt64 = 1

    var duration: Double { minutes * 60_000 }
    var requests: Int { Int(minutes * requestsPerMinute * Double(machines)) }

    /// Whether the server is in trouble at that time.
    func isTroubled(_ server: Int, at time: Double) -> Bool {
        trouble != .none && server == 0 && time >= duration / 3 && time < duration * 2 / 3
    }
}

/// What came of it.
///
/// A request of a machine is that of all its processes that want the same; their number is that of gets.
struct SimulationOutcome: Sendable {
    /// Gets that found the value on disk.
    var diskHits = 0
    /// Gets that waited for another one of their machine.
    var joined = 0
    /// Gets that asked a server, or would have.
    var remoteHits = 0
    var computations = 0
    /// Of these two, those whose server was not asked, as its breaker was open; and those that asked in vain.
    var skipped = 0
    var faults = 0
    /// What these waited for the servers, sorted.
    var waits: [Double] = []
    var load = SimulatedServers.Load()

    /// Gets that did not find the value on their machine, nor somebody who was fetching it.
    var misses: Int { remoteHits + computations }

    /// What so large a share of them waited at most.
    func wait(_ share: Double) -> Double {
        waits.isEmpty ? 0 : waits[min(waits.count - 1, Int(Double(waits.count) * share))]
    }
}
