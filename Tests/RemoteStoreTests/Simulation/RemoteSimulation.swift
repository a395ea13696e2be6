// SPDX-License-Identifier: Apache-2.0

import CacheStore

@testable import RemoteStore

/// A discrete simulation of machines that request values from shared servers, without sockets and clocks.
///
/// It drives ``Rendezvous`` and ``CircuitBreaker`` themselves. All machines and servers start empty. A machine reads its disk,
/// then asks the key's server (one request per key and machine), and computes the value if the server misses, fails or
/// is too late. A computed value is sent to the server in the background: at once, or from the queue on disk when the
/// server has recovered.
struct RemoteSimulation {
    private typealias Verdict = (place: Int, ticket: CircuitBreaker.Ticket, verdict: CircuitBreaker.Verdict)

    private let terms: SimulationTerms
    /// The server of each key.
    private let serverOfKey: [Int]
    private var demand: ZipfDemand
    private var servers: SimulatedServers
    /// One breaker for each machine and server.
    private var breakers: [CircuitBreaker]
    private var verdicts = TimedQueue<Verdict>()
    /// The times from which the servers have a key, and from which a machine has it on disk.
    ///
    /// Both may be in the future.
    private var stored: [Int: Double] = [:]
    private var disks: [Int: Double] = [:]
    private var outcome = SimulationOutcome()

    init(_ terms: SimulationTerms) {
        self.terms = terms
        let names = (0..<terms.servers).map { "server-\($0)" }
        let rendezvous = Rendezvous(names, weights: names.map { _ in 1 })
        serverOfKey = (0..<terms.keys).map { rendezvous.server(for: Digest(ofKey: "key \($0)")) ?? 0 }
        demand = ZipfDemand(terms)
        servers = SimulatedServers(terms)
        breakers = Array(
            repeating: CircuitBreaker(),
            count: terms.hasBreaker ? terms.machines * terms.servers : 0
        )
        disks.reserveCapacity(terms.requests)
    }

    /// Runs the whole simulation.
    static func run(_ terms: SimulationTerms) -> SimulationOutcome {
        var simulation = RemoteSimulation(terms)
        let gap = terms.duration / Double(terms.requests)
        for number in 0..<terms.requests {
            let now = Double(number) * gap
            simulation.judge(until: now)
            let (machine, key) = simulation.demand.next()
            simulation.get(key, on: machine, at: now)
        }
        simulation.outcome.waits.sort()
        simulation.outcome.load = simulation.servers.load
        return simulation.outcome
    }

    private mutating func get(_ key: Int, on machine: Int, at now: Double) {
        let place = machine * terms.keys + key
        let since = disks[place]
        if let since, since <= now {
            outcome.diskHits += terms.callers
            return
        }
        if since != nil, terms.isSingleFlight {
            outcome.joined += terms.callers
            return
        }
        let leaders = terms.isSingleFlight ? 1 : terms.callers
        outcome.joined += terms.callers - leaders
        for _ in 0..<leaders {
            let end = fetch(key, on: machine, at: now)
            disks[place] = min(disks[place] ?? end, end)
        }
    }

    /// Returns the time at which the machine has the value.
    private mutating func fetch(_ key: Int, on machine: Int, at now: Double) -> Double {
        let server = serverOfKey[key]
        let (wait, isAnswered) = ask(server, on: machine, at: now)
        outcome.waits.append(wait)
        if isAnswered, (stored[key] ?? .infinity) <= now {
            outcome.remoteHits += 1
            return now + wait
        }
        outcome.computations += 1
        let end = now + wait + terms.computation
        let arrival = terms.isTroubled(server, at: end) ? terms.duration * 2 / 3 : end
        stored[key] = min(stored[key] ?? arrival, arrival)
        return end
    }

    /// Returns how long the machine waits for the server, and whether it answers in time.
    private mutating func ask(
        _ server: Int,
        on machine: Int,
        at now: Double
    ) -> (wait: Double, isAnswered: Bool) {
        let place = machine * terms.servers + server
        var ticket = CircuitBreaker.Ticket.ordinary
        if terms.hasBreaker {
            let (given, next) = breakers[place].asking(at: UInt64(now), breakerTerms(machine))
            guard let given else {
                outcome.skipped += 1
                return (0, false)
            }
            breakers[place] = next
            ticket = given
        }
        let answer = servers.ask(server, at: now)
        let isAnswered = !answer.isError && answer.wait <= terms.budget
        if !isAnswered { outcome.faults += 1 }
        let wait = min(answer.wait, terms.budget)
        if terms.hasBreaker {
            verdicts.insert((place, ticket, isAnswered ? .prompt : .fault), at: now + wait)
        }
        return (wait, isAnswered)
    }

    /// Reports the outcomes of requests to the breakers up to this time.
    private mutating func judge(until now: Double) {
        while let (time, verdict) = verdicts.popFirst(until: now) {
            let machine = verdict.place / terms.servers
            breakers[verdict.place] = breakers[verdict.place].judged(
                verdict.verdict,
                verdict.ticket,
                at: UInt64(time),
                breakerTerms(machine)
            )
        }
    }

    private func breakerTerms(_ machine: Int) -> CircuitBreaker.Terms {
        var result = CircuitBreaker.Terms()
        result.seed = UInt64(machine)
        return result
    }
}
