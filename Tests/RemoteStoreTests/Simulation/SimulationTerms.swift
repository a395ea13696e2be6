// SPDX-License-Identifier: Apache-2.0

/// The parameters of a simulation.
///
/// Times are in milliseconds unless stated otherwise.
struct SimulationTerms: Sendable {
    /// The fault of the first server in the middle third of the time.
    enum Trouble: String, Sendable, CaseIterable {
        case none
        /// It works at 1/200 of its rate.
        case slow
        /// It accepts requests and does not answer, like a stopped process.
        case dead
        /// Each request fails after a round trip, as when connections are refused.
        case refusing
    }

    var machines = 10
    var servers = 1
    var minutes = 30.0
    /// Requests of one machine per minute, without hits in the memory of its processes.
    var requestsPerMinute = 20.0
    /// Processes of a machine that request the same key at the same time.
    var callers = 4
    var keys = 20_000
    /// The exponent of Zipf's law.
    var exponent = 1.0
    var trouble = Trouble.none
    var hasBreaker = true
    var isSingleFlight = true
    var roundTrip = 1.0
    /// The time that a server takes for an answer, one at a time.
    var service = 0.05
    var slowService = 10.0
    var budget = 250.0
    /// The time that it takes to compute a value.
    var computation = 2_000.0
    var seed: UInt64 = 1

    var duration: Double { minutes * 60_000 }
    var requests: Int { Int(minutes * requestsPerMinute * Double(machines)) }

    /// Whether the server is in trouble at that time.
    func isTroubled(_ server: Int, at time: Double) -> Bool {
        trouble != .none && server == 0 && time >= duration / 3 && time < duration * 2 / 3
    }
}

/// The outcome of a simulation.
///
/// Each of a machine's processes that request the same key at the same time counts as a get.
struct SimulationOutcome: Sendable {
    /// Gets that found the value on disk.
    var diskHits = 0
    /// Gets that waited for another get of their machine.
    var joined = 0
    /// Gets whose value came from a server, and gets that computed it.
    var remoteHits = 0
    var computations = 0
    /// Of these two, gets that did not ask the server because its breaker was open, and gets whose request failed.
    var skipped = 0
    var faults = 0
    /// The times that these gets waited for the servers, sorted.
    var waits: [Double] = []
    var load = SimulatedServers.Load()

    /// Gets that found neither the value nor another fetch of it on their machine.
    var misses: Int { remoteHits + computations }

    /// Returns the wait at this quantile of the misses.
    func wait(_ share: Double) -> Double {
        waits.isEmpty ? 0 : waits[min(waits.count - 1, Int(Double(waits.count) * share))]
    }
}
