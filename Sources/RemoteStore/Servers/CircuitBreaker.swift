// SPDX-License-Identifier: Apache-2.0

import Platform

/// The circuit breaker of a server: one word in the control file, shared by all processes of the machine.
///
/// ```
/// bits   0…1  0: closed, 1: open, 2: probing
///        2…7  points, while it is closed
///       8…15  failed probes since it opened
///      16…63  when the pause ends, or when the probe times out, ms of CLOCK_MONOTONIC
/// ```
///
/// *Closed*: all requests are sent. A fault (an error, or an answer that came too late) adds 8 points, a prompt answer
/// removes one; with more than 16 points the breaker opens. So it opens after three consecutive faults, and also in a
/// longer sequence in which more than one of nine requests fails. *Open*: no request is sent until the pause ends.
/// *Probing*: one request is sent; a prompt answer closes the breaker, a fault opens it for twice as long. If the probing
/// process is killed, its probe times out, and another process sends a probe.
///
/// This type is pure: each step returns the next word, which the caller stores by compare-and-swap; if the swap fails,
/// the caller repeats the step. A prompt answer of a server without faults changes nothing, and so costs only a load. The
/// word 0, as in a new control file, is a closed breaker without faults, and so is an invalid word. A time that is
/// further ahead than any pause was recorded before the last boot, and counts as past.
struct CircuitBreaker: Sendable, Hashable {
    /// The pauses and time limits, in milliseconds.
    struct Terms: Sendable, Hashable {
        /// The maximum of the first pause; the minimum is half of it.
        var firstPause: UInt64 = 1_000
        /// The longest pause, however many probes have failed.
        var longestPause: UInt64 = 30_000
        /// How long a probe may take before another one may be sent; longer than the time limit of a request.
        var probeLimit: UInt64 = 2_000
        /// Spreads the probes of many machines in time; must differ between machines.
        var seed: UInt64 = 0
    }

    enum Phase: UInt64, Sendable {
        case closed = 0
        case open = 1
        case probing = 2
    }

    /// The permission to send a request; the caller returns it with the verdict.
    enum Ticket: Sendable, Hashable {
        case ordinary
        /// The single request that decides whether the breaker closes.
        case probe(until: UInt64)
    }

    /// The outcome of a request.
    enum Verdict: Sendable {
        /// An answer in time; a miss is an answer, too.
        case prompt
        /// An error, or no answer within the limit.
        case fault
    }

    private static let pointsOfFault: UInt64 = 8
    private static let mostPoints: UInt64 = 16
    private static let mostFailures: UInt64 = 32

    /// The word in the control file.
    let word: UInt64

    init(word: UInt64 = 0) {
        self.word = word & 3 == 3 ? 0 : word
    }

    private init(_ phase: Phase, points: UInt64 = 0, failures: UInt64 = 0, moment: UInt64 = 0) {
        word = phase.rawValue | points << 2 | min(failures, Self.mostFailures) << 8 | moment << 16
    }

    var phase: Phase { Phase(rawValue: word & 3) ?? .closed }
    private var points: UInt64 { word >> 2 & 0x3f }
    private var failures: UInt64 { word >> 8 & 0xff }

    /// When the pause ends, or when the probe times out.
    var moment: UInt64 { word >> 16 }

    /// Returns the ticket for a request, or nil if no request may be sent now; and the breaker that must replace this one
    /// first.
    ///
    /// - Parameter now: Milliseconds of CLOCK_MONOTONIC.
    func asking(at now: UInt64, _ terms: Terms) -> (ticket: Ticket?, next: CircuitBreaker) {
        guard phase != .closed else { return (.ordinary, self) }
        guard isMomentPast(at: now, terms) else { return (nil, self) }
        // Each probe needs a different time, so that a late verdict on a probe that timed out is recognized.
        var until = Self.moment(now, after: terms.probeLimit)
        if phase == .probing, until == moment { until += 1 }
        return (.probe(until: until), CircuitBreaker(.probing, failures: failures, moment: until))
    }

    /// Returns the breaker that must replace this one after a request.
    func judged(
        _ verdict: Verdict,
        _ ticket: Ticket,
        at now: UInt64,
        _ terms: Terms
    ) -> CircuitBreaker {
        switch phase {
        case .closed:
            let isPrompt = verdict == .prompt
            if isPrompt && points == 0 { return self }
            let sum = isPrompt ? points - 1 : points + Self.pointsOfFault
            return sum > Self.mostPoints
                ? opened(failures: 0, at: now, terms) : CircuitBreaker(.closed, points: sum)
        case .open:
            // The request was sent before the breaker opened, so its outcome says nothing about the server's later state.
            return self
        case .probing:
            guard ticket == .probe(until: moment) else { return self }
            return verdict == .prompt ? CircuitBreaker() : opened(failures: failures + 1, at: now, terms)
        }
    }

    private func opened(failures: UInt64, at now: UInt64, _ terms: Terms) -> CircuitBreaker {
        let longest = max(terms.longestPause, 1)
        let doubled = max(terms.firstPause, 1).multipliedReportingOverflow(by: 1 << min(failures, 32))
        let pause = doubled.overflow ? longest : min(doubled.partialValue, longest)
        let jitter = SplitMix64.mix(terms.seed ^ now) % (pause / 2 + 1)
        return CircuitBreaker(.open, failures: failures, moment: Self.moment(now, after: pause - jitter))
    }

    private func isMomentPast(at now: UInt64, _ terms: Terms) -> Bool {
        moment <= now || moment - now > max(terms.longestPause, terms.probeLimit) + 1
    }

    /// Returns the time `pause` after `now`, limited to 48 bits, which last for 8,900 years.
    private static func moment(_ now: UInt64, after pause: UInt64) -> UInt64 {
        let (sum, overflow) = now.addingReportingOverflow(pause)
        return min(overflow ? UInt64.max : sum, (1 << 48) - 2)
    }
}
