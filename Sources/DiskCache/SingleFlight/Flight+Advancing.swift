// SPDX-License-Identifier: Apache-2.0

import Platform

// A flight in a batch, whose caller never waits for this flight alone.

extension Flight {
    /// Advances as far as possible without waiting or computing; a flight that waits for a process tries once.
    ///
    /// It may look up and store values and hand over, which blocks the thread.
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

    /// Whether it has ended, or would now, with a value or with the result that there is no value.
    var hasAnswer: Bool {
        if case .success = end { true } else { false }
    }

    /// The outcome of a wait whose deadline has passed.
    private var timedOutOutcome: FlightWaiter.Outcome? {
        waiting.isOver ? waiting.seat?.wait(until: .now) : nil
    }

    /// Ends without computing, and releases its lock and its lead.
    ///
    /// Must not be called for requests that compute in any case (``FlightStateMachine/Kind/value``).
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
