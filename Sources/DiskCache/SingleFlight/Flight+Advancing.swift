// SPDX-License-Identifier: Apache-2.0

import Platform

// A flight in a batch: the caller of a batch never waits for one flight alone.

extension Flight {
    /// Advances as far as possible without waiting or computing; if another process holds the lock, tries once to acquire
    /// it.
    ///
    /// It may look up and store values and hand over the lead, which blocks the thread.
    mutating func advance() {
        if course.action == .pause { proceed(.done) }
        while true {
            switch course.action {
            case .compute, .finish: return
            case .wait:
                guard let outcome = waiting.seat?.outcome ?? timedOutOutcome else { return }
                proceed(seated(outcome))
            case .pause:
                noteWait()
                guard waiting.isOver else { return }
                proceed(.timedOut)
            default: carryOut()
            }
        }
    }

    /// Whether the flight's result so far is a value, or that the key has no value.
    var hasAnswer: Bool {
        if case .success = end { true } else { false }
    }

    /// The outcome of a wait whose deadline has passed.
    private var timedOutOutcome: FlightWaiter.Outcome? {
        waiting.isOver ? waiting.seat?.wait(until: .now) : nil
    }

    /// Ends the flight without computing: releases the lock and hands over the lead.
    ///
    /// Must not be called for requests that compute even if they are cancelled (``FlightStateMachine/Kind/value``).
    mutating func abandon() {
        while course.action != .finish {
            switch course.action {
            case .wait:
                waiting.seat?.settle(.cancelled)
                proceed(seated(waiting.seat?.outcome))
            case .pause, .compute: proceed(.cancelled)
            default: carryOut()
            }
        }
    }
}
