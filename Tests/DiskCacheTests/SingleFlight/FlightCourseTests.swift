// SPDX-License-Identifier: Apache-2.0

import CacheStore
import TestSupport
import Testing

@testable import DiskCache

/// What a request does next, given what has happened.
@Suite(.takesTurns) struct FlightCourseTests {
    typealias Step = (event: FlightCourse.Event, next: FlightCourse.Action)

    /// Goes through a course, expecting these actions after these events.
    private func expect(
        _ kind: FlightCourse.Kind,
        _ first: FlightCourse.Action = .look,
        _ steps: Step...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        var course = FlightCourse(kind)
        #expect(course.action == first, sourceLocation: sourceLocation)
        for (number, step) in steps.enumerated() {
            course.proceed(step.event)
            #expect(course.action == step.next, "step \(number + 1)", sourceLocation: sourceLocation)
        }
        #expect(!course.isHolding || course.action != .finish, sourceLocation: sourceLocation)
        #expect(!course.isLeading || course.action != .finish, sourceLocation: sourceLocation)
    }

    @Test func `a hit is all that a request looks for`() {
        expect(.value, .look, (.hit, .finish))
    }

    @Test func `a hit that is getting old starts a refresh`() {
        expect(.value, .look, (.agingHit, .refresh), (.done, .finish))
    }

    @Test
    func `on a miss the first one gets the lock, looks again, computes, stores, releases and hands over`() {
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.acquired), .lookAgain),
            (.miss, .compute),
            (.computed, .store),
            (.stored, .release(isStored: true)),
            (.done, .handOver),
            (.done, .finish)
        )
    }

    @Test func `what another process has stored meanwhile is handed over, too`() {
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.acquired), .lookAgain),
            (.hit, .release(isStored: true)),
            (.done, .handOver),
            (.done, .finish)
        )
    }

    @Test func `what can't be handed over is looked for once the lock is released`() {
        expect(
            .valueInTime,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.acquired), .lookAgain),
            (.storedMeanwhile, .release(isStored: true)),
            (.done, .handOver),
            (.done, .look),
            (.agingHit, .refresh),
            (.done, .finish)
        )
    }

    @Test func `those who join wait, for a value or for the lead`() {
        expect(.value, .look, (.miss, .enter), (.joined, .wait), (.hit, .finish))
        expect(.value, .look, (.miss, .enter), (.joined, .wait), (.leads, .attempt))
    }

    @Test
    func `while another process has the lock it is tried again, and once that is done it is looked again`() {
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.held), .pause),
            (.done, .attempt),
            (.attempted(.held), .pause),
            (.done, .attempt),
            (.attempted(.ended(isUnstored: false)), .lookAgain),
            (.miss, .attempt),
            (.attempted(.acquired), .lookAgain),
            (.miss, .compute)
        )
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.ended(isUnstored: false)), .lookAgain),
            (.hit, .handOver),
            (.done, .finish)
        )
    }

    @Test func `if the other one could not store the value, all compute at once`() {
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.ended(isUnstored: true)), .lookAgain),
            (.miss, .compute),
            (.computed, .store),
            (.unstored, .handOver),
            (.done, .finish)
        )
    }

    @Test func `without locks the leader computes, for its process alone`() {
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.unavailable, .compute),
            (.computed, .store),
            (.unstored, .handOver),
            (.done, .finish)
        )
        expect(.valueInTime, .look, (.unavailable, .compute), (.computed, .store), (.stored, .finish))
    }

    @Test func `a value that could not be stored is handed over, and the lock says so`() {
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.acquired), .lookAgain),
            (.miss, .compute),
            (.computed, .store),
            (.unstored, .release(isStored: false)),
            (.done, .handOver),
            (.done, .finish)
        )
    }

    @Test func `a failure releases the lock, passes on the lead, and looks for an expired value last`() {
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.acquired), .lookAgain),
            (.miss, .compute),
            (.failed, .release(isStored: true)),
            (.done, .handOver),
            (.done, .fallBack),
            (.miss, .finish)
        )
    }

    @Test func `who finds that a computation has just failed joins no flight`() {
        expect(.value, .look, (.miss, .enter), (.failed, .fallBack), (.hit, .finish))
    }

    @Test func `who has waited in vain moves to the next flight, and computes there beside the other`() {
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.joined, .wait),
            (.timedOut, .enter),
            (.leads, .lookAgain),
            (.miss, .compute),
            (.computed, .store),
            (.stored, .handOver),
            (.done, .finish)
        )
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.held), .pause),
            (.timedOut, .handOver),
            (.done, .enter),
            (.joined, .wait),
            (.timedOut, .enter),
            (.leads, .lookAgain),
            (.hit, .handOver),
            (.done, .finish)
        )
    }

    @Test func `who is cancelled while waiting computes for itself`() {
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.joined, .wait),
            (.cancelled, .compute),
            (.computed, .store),
            (.stored, .finish)
        )
        expect(
            .value,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.held), .pause),
            (.cancelled, .handOver),
            (.done, .compute)
        )
    }

    @Test func `who can be cancelled ends without a value then, and computes at its limit`() {
        expect(.cancellable, .look, (.miss, .enter), (.joined, .wait), (.cancelled, .finish))
        expect(
            .cancellable,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.held), .pause),
            (.timedOut, .handOver),
            (.done, .enter),
            (.leads, .lookAgain)
        )
    }

    @Test func `who computes together with others gives up what it has where they fail`() {
        expect(
            .cancellable,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.acquired), .lookAgain),
            (.miss, .compute),
            (.cancelled, .release(isStored: true)),
            (.done, .handOver),
            (.done, .finish)
        )
    }

    @Test func `who is handed what is of no use to it joins the next flight, or leads it`() {
        expect(.value, .look, (.miss, .enter), (.joined, .wait), (.miss, .enter), (.leads, .attempt))
    }

    @Test(arguments: [FlightCourse.Event.timedOut, .cancelled])
    func `a request for a value in time ends without one`(event: FlightCourse.Event) {
        expect(.valueInTime, .look, (.miss, .enter), (.joined, .wait), (event, .finish))
        expect(
            .valueInTime,
            .look,
            (.miss, .enter),
            (.leads, .attempt),
            (.attempted(.held), .pause),
            (event, .handOver),
            (.done, .finish)
        )
    }

    @Test func `a refresh computes if nobody else does or has`() {
        expect(
            .refresh,
            .attempt,
            (.attempted(.acquired), .lookAgain),
            (.miss, .compute),
            (.computed, .store),
            (.stored, .release(isStored: true)),
            (.done, .handOver),
            (.done, .finish)
        )
        expect(
            .refresh,
            .attempt,
            (.attempted(.acquired), .lookAgain),
            (.hit, .release(isStored: true)),
            (.done, .handOver),
            (.done, .finish)
        )
        expect(
            .refresh,
            .attempt,
            (.attempted(.acquired), .lookAgain),
            (.miss, .compute),
            (.failed, .release(isStored: true)),
            (.done, .handOver),
            (.done, .finish)
        )
    }

    @Test(arguments: [
        FlightCourse.Event.attempted(.held), .attempted(.ended(isUnstored: false)),
        .attempted(.ended(isUnstored: true)), .unavailable,
    ])
    func `a refresh waits for nobody`(event: FlightCourse.Event) {
        expect(.refresh, .attempt, (event, .handOver), (.done, .finish))
    }
}
