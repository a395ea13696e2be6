// SPDX-License-Identifier: Apache-2.0

import CacheStore
import TestSupport

@testable import RemoteStore

/// Machines that ask shared servers for values by Zipf's law, without sockets and clocks: a discrete
/// simulation that drives ``Rendezvous`` and ``Breaker`` themselves.
///
/// A machine looks on its disk, then at the server that has the key (one request a key and machine), and
/// computes where that has nothing, or fails, or is too late. A server answers one request after another; a
/// dead one does not answer at all, a slow one takes its time. Times are in milliseconds.
struct RemoteSimulation {
    enum Trouble { case none, slow, dead }

    struct Terms {
        var machines = 10
        var servers = 4
        var keys = 2_000
        var requests = 20_000
        /// How long it all takes.
        var duration = 60_000.0
        var exponent = 1.0
        /// Of the first server, in the middle third.
        var trouble = Trouble.none
        var hasBreaker = true
        var isSingleFlight = true
        var roundTrip = 1.0
        var service = 0.05
        var budget = 250.0
        var computation = 2_000.0
        var seed: UInt64 = 1
    }

    struct Outcome {
        var diskHits = 0
        var remoteHits = 0
        var joined = 0
        var computations = 0
        var skipped = 0
        var faults = 0
        var load: [Int] = []
        /// What the gets waited for the servers.
        var waits: [Double] = []

        mutating func sort() { waits.sort() }

        /// After ``sort()``.
        func wait(_ share: Double) -> Double {
            waits.isEmpty ? 0 : waits[min(waits.count - 1, Int(Double(waits.count) * share))]
        }
    }

    /// What a server says at a later time.
    private struct Answer {
        let time: Double
        let place: Int
        let ticket: Breaker.Ticket
        let verdict: Breaker.Verdict
    }

    private let terms: Terms
    private let rendezvous: Rendezvous
    private let digests: [Digest]
    /// For each key, the chance of it and all before it.
    private let chances: [Double]
    private var generator: SeededGenerator
    private var breakers: [Breaker]
    private var answers: [Answer] = []
    private var freeAt: [Double]
    /// The keys that a server will have, and since when.
    private var stored: [Int: Double] = [:]
    /// For each machine and key, since when it is on disk.
    private var disks: [Int: Double] = [:]
    private var outcome = Outcome()

    init(_ terms: Terms) {
        self.terms = terms
        rendezvous = Rendezvous((0..<terms.servers).map { Server(name: "server-\($0)") })
        digests = (0..<terms.keys).map { Digest(ofKey: "key \($0)") }
        generator = SeededGenerator(seed: terms.seed)
        breakers = Array(repeating: Breaker(), count: terms.machines * terms.servers)
        freeAt = Array(repeating: 0, count: terms.servers)
        outcome.load = Array(repeating: 0, count: terms.servers)
        var sum = 0.0
        var chances: [Double] = []
        for rank in 1...terms.keys {
            sum += 1 / power(Double(rank), terms.exponent)
            chances.append(sum)
        }
        self.chances = chances
    }

    /// Runs it through.
    mutating func run() -> Outcome {
        let gap = terms.duration / Double(terms.requests)
        for number in 0..<terms.requests {
            let now = Double(number) * gap
            settle(until: now)
            let machine = Int.random(in: 0..<terms.machines, using: &generator)
            get(key(), on: machine, at: now)
        }
        outcome.sort()
        return outcome
    }

    private mutating func key() -> Int {
        let chosen = Double.random(in: 0..<(chances.last ?? 1), using: &generator)
        var (low, high) = (0, chances.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if chances[middle] > chosen { high = middle } else { low = middle + 1 }
        }
        return low
    }

    private mutating func get(_ key: Int, on machine: Int, at now: Double) {
        let place = machine * terms.keys + key
        if let since = disks[place] {
            if since <= now {
                outcome.diskHits += 1
                outcome.waits.append(0)
                return
            }
            if terms.isSingleFlight {
                outcome.joined += 1
                return
            }
        }
        let (wait, hasValue) = ask(for: key, on: machine, at: now)
        outcome.waits.append(wait)
        var end = now + wait
        if hasValue {
            outcome.remoteHits += 1
        } else {
            outcome.computations += 1
            end += terms.computation
            if stored[key] == nil { stored[key] = end }
        }
        disks[place] = min(disks[place] ?? end, end)
    }

    /// How long the server is waited for, and whether it has the value.
    private mutating func ask(for key: Int, on machine: Int, at now: Double) -> (Double, Bool) {
        guard let server = rendezvous.server(for: digests[key]) else { return (0, false) }
        let place = machine * terms.servers + server
        var ticket = Breaker.Ticket.ordinary
        if terms.hasBreaker {
            let (given, next) = breakers[place].asking(at: UInt64(now), breakerTerms(machine))
            guard let given else {
                outcome.skipped += 1
                return (0, false)
            }
            breakers[place] = next
            ticket = given
        }
        outcome.load[server] += 1
        let wait = answerTime(of: server, at: now)
        let isPrompt = wait <= terms.budget
        if !isPrompt { outcome.faults += 1 }
        let waited = min(wait, terms.budget)
        insert(Answer(time: now + waited, place: place, ticket: ticket, verdict: isPrompt ? .prompt : .fault))
        return (waited, isPrompt && (stored[key] ?? .infinity) <= now)
    }

    private mutating func answerTime(of server: Int, at now: Double) -> Double {
        var service = terms.service
        if server == 0, now > terms.duration / 3, now < terms.duration * 2 / 3 {
            switch terms.trouble {
            case .none: break
            case .slow: service = 400
            case .dead: return .infinity
            }
        }
        // Who gives up is gone from the queue: a server never is further behind than that.
        let start = min(max(freeAt[server], now), now + terms.budget)
        freeAt[server] = start + service
        return start + service - now + terms.roundTrip
    }

    private func breakerTerms(_ machine: Int) -> Breaker.Terms {
        var result = Breaker.Terms()
        result.seed = UInt64(machine)
        return result
    }

    // MARK: Answers, the soonest last

    private mutating func insert(_ answer: Answer) {
        var (low, high) = (0, answers.count)
        while low < high {
            let middle = (low + high) / 2
            if answers[middle].time > answer.time { low = middle + 1 } else { high = middle }
        }
        answers.insert(answer, at: low)
    }

    private mutating func settle(until now: Double) {
        while let answer = answers.last, answer.time <= now {
            answers.removeLast()
            guard terms.hasBreaker else { continue }
            let terms = breakerTerms(answer.place / self.terms.servers)
            breakers[answer.place] = breakers[answer.place].judged(
                answer.verdict,
                answer.ticket,
                at: UInt64(answer.time),
                terms
            )
        }
    }
}

/// `base` to the power of `exponent`, by halving the exponent: no mathematics library is at hand on every
/// platform.
private func power(_ base: Double, _ exponent: Double) -> Double {
    var result = 1.0
    var (whole, rest) = (Int(exponent), exponent - Double(Int(exponent)))
    while whole > 0 { (result, whole) = (result * base, whole - 1) }
    var root = base
    for _ in 0..<40 where rest > 0 {
        root = root.squareRoot()
        rest *= 2
        if rest >= 1 { (result, rest) = (result * root, rest - 1) }
    }
    return result
}
