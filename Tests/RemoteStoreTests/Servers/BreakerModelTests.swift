// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models
@testable import RemoteStore

/// Every interleaving of two processes that share one word, with a server that goes up and down and a process that
/// is killed.
///
/// Each step is a load, a compare-and-swap or an answer. The model drives ``CircuitBreaker`` itself.
struct BreakerModel: ExploredModel {
    enum Mistake: CaseIterable {
        /// The word is stored without a comparison with its present value.
        case storedBlindly
        /// The verdict of any request counts as the probe's verdict.
        case anyVerdictCounts
        /// A probe never times out.
        case probeNeverGivenUp
    }

    enum Step: Hashable {
        case idle
        /// The process has loaded the word, and has decided how to send its request.
        case decided(CircuitBreaker.Ticket, from: CircuitBreaker, to: CircuitBreaker)
        case asked(CircuitBreaker.Ticket)
        /// The process has its answer.
        case answered(CircuitBreaker.Ticket, CircuitBreaker.Verdict)
        /// The process has loaded the word that its verdict will change.
        case judging(CircuitBreaker.Ticket, CircuitBreaker.Verdict, from: CircuitBreaker)
        case killed
    }

    struct State: Hashable {
        var now: UInt64 = 0
        var word = CircuitBreaker()
        var isUp = true
        var isBroken = false
        var steps: [Step] = [.idle, .idle]
        var closedWithoutProbe = false
        /// The number of requests that each may still send, which keeps the state space small.
        var requestsLeft = [3, 2]
        var changes = 0
    }

    enum Move { case process(Int), kill(Int), tick, server }

    static let end: UInt64 = 5
    let mistake: Mistake?
    let terms: CircuitBreaker.Terms

    init(_ mistake: Mistake?) {
        self.mistake = mistake
        var terms = CircuitBreaker.Terms()
        terms.firstPause = 1
        terms.longestPause = 2
        terms.probeLimit = mistake == .probeNeverGivenUp ? 1 << 40 : 2
        self.terms = terms
    }

    /// A state in which one more fault opens the breaker, which keeps the state space small.
    var initialStates: [State] {
        var state = State()
        for _ in 0..<2 { state.word = state.word.judged(.fault, .ordinary, at: 0, terms) }
        return [state]
    }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        func add(_ move: Move, _ advance: (inout State) -> Void) {
            var copy = state
            advance(&copy)
            next.append(copy)
            moves.append(move)
        }
        for index in state.steps.indices where state.steps[index] != .killed {
            add(.process(index)) { self.advance(index, in: &$0) }
        }
        if !state.steps.contains(.killed), state.steps[0] != .idle {
            add(.kill(0)) { $0.steps[0] = .killed }
        }
        if state.now < Self.end { add(.tick) { $0.now += 1 } }
        if state.changes < 2 {
            add(.server) { state in
                state.isUp.toggle()
                state.changes += 1
            }
        }
    }

    private func advance(_ index: Int, in state: inout State) {
        switch state.steps[index] {
        case .idle:
            let (ticket, next) = state.word.asking(at: state.now, terms)
            if let ticket, state.requestsLeft[index] > 0 {
                state.steps[index] = .decided(ticket, from: state.word, to: next)
            }
        case .decided(let ticket, let old, let new):
            guard state.word == old || mistake == .storedBlindly else {
                state.steps[index] = .idle
                return
            }
            state.word = new
            state.requestsLeft[index] -= 1
            if ticket != .ordinary, isProbedByOthers(than: index, state) { state.isBroken = true }
            state.steps[index] = .asked(ticket)
        case .asked(let ticket): state.steps[index] = .answered(ticket, state.isUp ? .prompt : .fault)
        case .answered(let ticket, let verdict):
            state.steps[index] = .judging(ticket, verdict, from: state.word)
        case .judging(let ticket, let verdict, let old):
            guard state.word == old else {
                state.steps[index] = .answered(ticket, verdict)
                return
            }
            let counted: CircuitBreaker.Ticket =
                mistake == .anyVerdictCounts && old.phase == .probing ? .probe(until: old.moment) : ticket
            state.word = old.judged(verdict, counted, at: state.now, terms)
            if old.phase != .closed, state.word.phase == .closed, ticket != .probe(until: old.moment) {
                state.closedWithoutProbe = true
            }
            state.steps[index] = .idle
        case .killed: break
        }
    }

    /// Whether another process has sent a probe that has not timed out.
    private func isProbedByOthers(than index: Int, _ state: State) -> Bool {
        state.steps.indices.contains { other in
            guard other != index, case .asked(.probe(let until)) = state.steps[other] else { return false }
            return until > state.now
        }
    }

    /// Whether a single process would soon close the breaker if the server answers.
    func closesByItself(_ state: State) -> Bool {
        var breaker = state.word
        for now in state.now...state.now + 6 where breaker.phase != .closed {
            let (ticket, next) = breaker.asking(at: now, terms)
            breaker = ticket.map { next.judged(.prompt, $0, at: now, terms) } ?? next
        }
        return breaker.phase == .closed
    }

    func fault(of state: State) -> String? {
        if state.isBroken { return "two probes at once" }
        if state.closedWithoutProbe { return "closed by what was no probe's answer" }
        return closesByItself(state) ? nil : "stays open"
    }

    func line(for move: Move, from before: State, to after: State) -> String {
        "\(move)  => \(summary(of: after))"
    }

    func summary(of state: State) -> String {
        "\(state.now): \(state.word.phase) until \(state.word.moment), up \(state.isUp), \(state.steps)"
    }
}

@Suite("A breaker between two processes, in every interleaving, with every crash", .takesTurns)
struct BreakerModelTests {
    @Test(
        "only one probe runs at a time, only its answer closes the breaker, and no breaker stays open forever"
    )
    func isSound() {
        let model = BreakerModel(nil)
        var space = StateSpace(of: model)
        let found = space.visit { state, _ in model.fault(of: state) }
        #expect(found == nil, "\(found.map { [$0.finding] + $0.trace }?.joined(separator: "\n") ?? "")")
        #expect(space.states.contains { $0.word.phase == .probing })
        #expect(space.states.contains { $0.word.phase == .open })
        #expect(space.states.contains { $0.changes == 2 && $0.word == CircuitBreaker() }, "it closes")
    }

    @Test("each mistake in the protocol is found", arguments: BreakerModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: BreakerModel.Mistake) {
        let model = BreakerModel(mistake)
        var space = StateSpace(of: model)
        let found = space.visit { state, _ in model.fault(of: state) }
        #expect(found != nil, "\(mistake) in \(space.states.count) states")
    }
}
