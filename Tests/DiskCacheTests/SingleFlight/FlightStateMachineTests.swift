// SPDX-License-Identifier: Apache-2.0

import CacheStore
import TestSupport
import Testing

@testable import DiskCache

/// The next action of a request after each event.
@Suite(.takesTurns) struct FlightStateMachineTests {
    typealias Step = (event: FlightStateMachine.Event, next: FlightStateMachine.Action)

    /// Steps through a course and expects the given action after each event.
    private func expect(
        _ kind: FlightStateMachine.Kind,
        _ first: FlightStateMachine.Action = .look,
        _ steps: Step...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        var course = FlightStateMachine(kind)
        #expect(course.action == first, sourceLocation: sourceLocation)
        for (number, step) in steps.enumerated() {
            course.proceed(step.event)
            #expect(course.action == step.next, "step \(number + 1)", sourceLocation: sourceLocation)
        }
        #expect(!course.isHolding || course.action != .finish, sourceLocation: sourceLocation)
        #expect(!course.isLeading || course.action != .finish, sourceLocation: sourceLocation)
    }

    @Test func `a hit finishes a request`() {
        expect(.value, .look, (.hit, .finish))
    }

    @Test func `an aging hit starts a refresh`() {
        expect(.value, .look, (.agingHit, .refresh), (.done, .finish))
    }

    @Test
    func `after a miss the leader locks, looks again, computes, stores, releases and hands over`() {
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

    @Test func `a value that another process stored meanwhile is handed over`() {
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

    @Test func `a value that cannot be handed over is looked up after the lock is released`() {
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

    @Test func `a follower waits for a value or for the lead`() {
        expect(.value, .look, (.miss, .enter), (.joined, .wait), (.hit, .finish))
        expect(.value, .look, (.miss, .enter), (.joined, .wait), (.leads, .attempt))
    }

    @Test
    func `a held lock is retried, and the leader looks again once its holder has ended`() {
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

    @Test func `if the lock holder could not store its value, the leader computes without the lock`() {
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

    @Test func `without locks the leader computes for its process only`() {
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

    @Test func `an unstored value is handed over, and the lock is released as unstored`() {
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

    @Test func `a failure releases the lock, hands over the lead, and then looks for a stale value`() {
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

    @Test func `a request that finds a recent failure joins no flight`() {
        expect(.value, .look, (.miss, .enter), (.failed, .fallBack), (.hit, .finish))
    }

    @Test func `a waiter that times out moves to the next flight and computes there`() {
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

    @Test func `a cancelled waiter that must return a value computes alone`() {
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

    @Test func `a cancellable waiter finishes without a value if cancelled and computes at its limit`() {
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

    @Test func `a cancelled computation releases the lock and hands over the lead`() {
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

    @Test func `a waiter that cannot use the handed-over value enters the next flight`() {
        expect(.value, .look, (.miss, .enter), (.joined, .wait), (.miss, .enter), (.leads, .attempt))
    }

    @Test(arguments: [FlightStateMachine.Event.timedOut, .cancelled])
    func `a timed-out or cancelled request for a value in time finishes`(event: FlightStateMachine.Event) {
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

    @Test func `a refresh computes unless a new value is already stored`() {
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
        FlightStateMachine.Event.attempted(.held), .attempted(.ended(isUnstored: false)),
        .attempted(.ended(isUnstored: true)), .unavailable,
    ])
    func `a refresh does not wait for a held or unavailable lock`(event: FlightStateMachine.Event) {
        expect(.refresh, .attempt, (event, .handOver), (.done, .finish))
    }
}
