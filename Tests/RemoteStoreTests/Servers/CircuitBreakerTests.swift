// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RemoteStore

@Suite(.takesTurns) struct CircuitBreakerTests {
    private let terms = CircuitBreaker.Terms()

    /// Returns a breaker that three faults have opened at the given time.
    private func opened(at now: UInt64 = 1_000_000) -> CircuitBreaker {
        (0..<3).reduce(CircuitBreaker()) { breaker, _ in breaker.judged(.fault, .ordinary, at: now, terms) }
    }

    @Test("three consecutive faults open the breaker, two do not")
    func opens() {
        var breaker = CircuitBreaker()
        for expected in [CircuitBreaker.Phase.closed, .closed, .open] {
            breaker = breaker.judged(.fault, .ordinary, at: 5, terms)
            #expect(breaker.phase == expected)
        }
        #expect(breaker.asking(at: 6, terms).ticket == nil)
    }

    @Test("a server that answers in time changes nothing")
    func prompt() {
        #expect(CircuitBreaker().judged(.prompt, .ordinary, at: 7, terms) == CircuitBreaker())
        #expect(CircuitBreaker().asking(at: 7, terms).next == CircuitBreaker())
    }

    @Test("one fault in ten answers does not open the breaker, one in four does")
    func share() {
        func phase(promptBetween: Int) -> CircuitBreaker.Phase {
            var breaker = CircuitBreaker()
            for _ in 0..<100 where breaker.phase == .closed {
                breaker = breaker.judged(.fault, .ordinary, at: 5, terms)
                for _ in 0..<promptBetween { breaker = breaker.judged(.prompt, .ordinary, at: 5, terms) }
            }
            return breaker.phase
        }
        #expect(phase(promptBetween: 9) == .closed)
        #expect(phase(promptBetween: 3) == .open)
    }

    @Test("after the pause one probe is sent, and its answer closes the breaker")
    func closes() throws {
        let breaker = opened()
        #expect(breaker.moment > 1_000_000 && breaker.moment <= 1_000_000 + terms.firstPause)
        #expect(breaker.moment >= 1_000_000 + terms.firstPause / 2)
        let (ticket, probing) = breaker.asking(at: breaker.moment, terms)
        #expect(probing.phase == .probing)
        #expect(probing.asking(at: breaker.moment, terms).ticket == nil, "only one")
        let probe = try #require(ticket)
        #expect(probing.judged(.prompt, probe, at: breaker.moment, terms) == CircuitBreaker())
    }

    @Test("each failed probe lengthens the pause, up to a maximum")
    func backsOff() throws {
        var breaker = opened()
        var pauses: [UInt64] = []
        for _ in 0..<40 {
            let now = breaker.moment
            let (ticket, probing) = breaker.asking(at: now, terms)
            let probe = try #require(ticket)
            breaker = probing.judged(.fault, probe, at: now, terms)
            #expect(breaker.phase == .open)
            pauses.append(breaker.moment - now)
        }
        for (number, pause) in pauses.enumerated() {
            let span = min(terms.firstPause << UInt64(min(number + 1, 20)), terms.longestPause)
            #expect(pause <= span && pause >= span / 2)
        }
    }

    @Test("a probe of a dead process is abandoned, and its late answer is ignored")
    func deadProber() throws {
        let breaker = opened()
        let (granted, probing) = breaker.asking(at: breaker.moment, terms)
        let later = probing.moment
        let (grantedLater, again) = probing.asking(at: later, terms)
        let first = try #require(granted)
        let second = try #require(grantedLater)
        #expect(second != first)
        #expect(again.judged(.prompt, first, at: later, terms) == again)
        #expect(again.judged(.prompt, .ordinary, at: later, terms) == again)
        #expect(again.judged(.prompt, second, at: later, terms) == CircuitBreaker())
    }

    @Test("probes follow each other even with a time limit of zero")
    func noTime() {
        var terms = self.terms
        terms.probeLimit = 0
        let breaker = opened()
        let (first, probing) = breaker.asking(at: breaker.moment, terms)
        let (second, _) = probing.asking(at: breaker.moment, terms)
        #expect(first != nil && second != nil && first != second)
    }

    @Test("times of an earlier boot are in the past, and invalid words mean closed")
    func foreignWords() {
        let breaker = opened(at: 1 << 40)
        #expect(breaker.asking(at: 1_000, terms).ticket != nil)
        #expect(CircuitBreaker(word: .max).phase == .closed)
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<2_000 {
            var found = CircuitBreaker(word: generator.next())
            let now = generator.next() >> UInt64.random(in: 0..<64, using: &generator)
            // A server that answers closes the breaker, whatever the word was.
            var tries = 0
            var time = now
            while found.phase != .closed, tries < 4 {
                tries += 1
                let (ticket, next) = found.asking(at: time, terms)
                found = ticket.map { next.judged(.prompt, $0, at: time, terms) } ?? next
                time = min(time, 1 << 47) + terms.longestPause + terms.probeLimit + 2
            }
            #expect(found.phase == .closed)
        }
    }

    @Test("two machines do not probe in step")
    func jitter() {
        var moments: Set<UInt64> = []
        for seed in 0..<100 {
            var terms = self.terms
            terms.seed = UInt64(seed)
            let open = (0..<3).reduce(CircuitBreaker()) { breaker, _ in
                breaker.judged(.fault, .ordinary, at: 9, terms)
            }
            moments.insert(open.moment)
        }
        #expect(moments.count > 50)
    }
}
