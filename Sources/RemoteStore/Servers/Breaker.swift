// SPDX-License-Identifier: Apache-2.0

import Platform

/// Whether a server is asked at all: one word, which all processes of the machine share in the control file.
///
/// ```
/// bits   0…1  0: closed, 1: open, 2: probing
///        2…7  points, while it is closed
///       8…15  how often a probe failed since it opened
///      16…63  until when it is open, or when the probe is given up, ms of CLOCK_MONOTONIC
/// ```
///
/// *Closed*: everybody asks. A fault (an error, or an answer that came too late) makes 8 points, a prompt
/// answer takes one away; with more than 16 it opens. So three faults in a row open it, and so do many where
/// more than one answer of nine is a fault. *Open*: nobody asks until the pause is over. *Probing*: one asks;
/// its answer closes it, its fault opens it for twice as long. Who probed and was killed is given up after a
/// while, and another one probes.
///
/// It is pure: each step gives the word that should replace this one by compare-and-swap, and is taken again
/// where the swap fails. A prompt answer of a server without faults changes nothing, and so costs a load. 0
/// is a closed one without faults, as in a control file that was just made. A word that makes no sense counts
/// as that; moments that lie further ahead than any pause are of an earlier boot and count as past.
package struct Breaker: Sendable, Hashable {
    /// Times in milliseconds.
    package struct Terms: Sendable, Hashable {
        /// How long it is open first, at most; at least half of it.
        package var firstPause: UInt64 = 1_000
        /// No pause is longer, however often probes failed.
        package var longestPause: UInt64 = 30_000
        /// So long a probe may take before another one may be sent; above the time limit of a request.
        package var probeLimit: UInt64 = 2_000
        /// Spreads the probes of many machines; different on each.
        package var seed: UInt64 = 0

        package init() {}
    }

    package enum Phase: UInt64, Sendable {
        case closed = 0
        case open = 1
        case probing = 2
    }

    /// What a request may be sent with; it comes back with the verdict.
    package enum Ticket: Sendable, Hashable {
        case ordinary
        /// The one request that decides whether it closes.
        case probe(until: UInt64)
    }

    /// What came of a request.
    package enum Verdict: Sendable {
        /// An answer in time; that there is no such value is one too.
        case prompt
        /// An error, or no answer within the limit.
        case fault
    }

    private static let pointsOfFault: UInt64 = 8
    private static let mostPoints: UInt64 = 16
    private static let mostFailures: UInt64 = 32

    /// What is kept in the control file.
    package let word: UInt64

    package init(word: UInt64 = 0) {
        self.word = word & 3 == 3 ? 0 : word
    }

    private init(_ phase: Phase, points: UInt64 = 0, failures: UInt64 = 0, moment: UInt64 = 0) {
        word = phase.rawValue | points << 2 | min(failures, Self.mostFailures) << 8 | moment << 16
    }

    package var phase: Phase { Phase(rawValue: word & 3) ?? .closed }
    private var points: UInt64 { word >> 2 & 0x3f }
    private var failures: UInt64 { word >> 8 & 0xff }

    /// Until when it is open, or when the probe is given up.
    package var moment: UInt64 { word >> 16 }

    /// Whether a request may be sent now: with which ticket (nil: not), and what must replace this word
    /// first.
    ///
    /// - Parameter now: milliseconds of CLOCK_MONOTONIC.
    package func asking(at now: UInt64, _ terms: Terms) -> (ticket: Ticket?, next: Breaker) {
        guard phase != .closed else { return (.ordinary, self) }
        guard isMomentPast(at: now, terms) else { return (nil, self) }
        // A later probe must have another moment, so that the verdict of one that was given up tells.
        var until = Self.moment(now, after: terms.probeLimit)
        if phase == .probing, until == moment { until += 1 }
        return (.probe(until: until), Breaker(.probing, failures: failures, moment: until))
    }

    /// What must replace this word, now that a request has its answer.
    package func judged(
        _ verdict: Verdict,
        _ ticket: Ticket,
        at now: UInt64,
        _ terms: Terms
    ) -> Breaker {
        switch phase {
        case .closed:
            let isPrompt = verdict == .prompt
            // Without a fault nothing is to be written.
            if isPrompt && points == 0 { return self }
            let sum = isPrompt ? points - 1 : points + Self.pointsOfFault
            return sum > Self.mostPoints
                ? opened(failures: 0, at: now, terms) : Breaker(.closed, points: sum)
        case .open:
            // It was sent before, and tells nothing of later.
            return self
        case .probing:
            guard ticket == .probe(until: moment) else { return self }
            return verdict == .prompt ? Breaker() : opened(failures: failures + 1, at: now, terms)
        }
    }

    private func opened(failures: UInt64, at now: UInt64, _ terms: Terms) -> Breaker {
        let longest = max(terms.longestPause, 1)
        let doubled = max(terms.firstPause, 1).multipliedReportingOverflow(by: 1 << min(failures, 32))
        let pause = doubled.overflow ? longest : min(doubled.partialValue, longest)
        let jitter = SplitMix64.mix(terms.seed ^ now) % (pause / 2 + 1)
        return Breaker(.open, failures: failures, moment: Self.moment(now, after: pause - jitter))
    }

    private func isMomentPast(at now: UInt64, _ terms: Terms) -> Bool {
        moment <= now || moment - now > max(terms.longestPause, terms.probeLimit) + 1
    }

    /// As far as 48 bits go, which are 8,900 years.
    private static func moment(_ now: UInt64, after pause: UInt64) -> UInt64 {
        let (sum, overflow) = now.addingReportingOverflow(pause)
        return min(overflow ? UInt64.max : sum, (1 << 48) - 2)
    }
}
