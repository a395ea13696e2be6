// SPDX-License-Identifier: Apache-2.0

import Platform

// A flight among others, whose caller waits for none of them alone.

extension Flight {
    /// Goes on as far as it can without waiting or computing; one that waits for a process tries once.
    ///
    /// It may look, store and hand over, which blocks the thread.
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

    /// Whether it has ended, or would now, with a value or with the certainty that there is none.
    var hasAnswer: Bool {
        if case .success = end { true } else { false }
    }

    /// How its waiting has ended where there is no time left.
    private var timedOutOutcome: FlightSeat.Outcome? {
        waiting.isOver ? waiting.seat?.wait(until: .now) : nil
    }

    /// Ends without computing, and gives up what it has.
    ///
    /// Not for requests that compute in the end whatever happens (``FlightCourse/Kind/value``).
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
