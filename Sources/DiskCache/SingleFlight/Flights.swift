// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// The computations of one cache in this process.
final class Flights: Sendable {
    /// Something that is counted.
    enum Event: Int, CaseIterable, Sendable {
        /// A computation was begun, in the background or not.
        case computation
        /// One of them failed.
        case computeFailure
        /// Somebody waited for another's, in this process or another.
        case wait
        /// A computation was begun in the background.
        case refresh
        /// The cache could not be read, locked or written, and the value was computed without it.
        case cacheFailure
    }

    private let table = Locked(FlightTable<any AnyFlightSeat>())
    private let failures = Locked(FailureMemory())
    private let counts = Event.allCases.map { _ in Count() }

    private final class Count: Sendable {
        let value = Atomic<Int>(0)
    }

    /// Joins the flight of `key`, or begins it.
    func enter(_ key: FlightKey, _ seat: any AnyFlightSeat) -> FlightTable<any AnyFlightSeat>.Entry {
        table.withLock { $0.enter(key, seat) }
    }

    /// Begins the flight of `key`; false where there is one.
    func begin(_ key: FlightKey) -> Bool {
        table.withLock { $0.begin(key) }
    }

    /// Gives up waiting.
    func leave(_ key: FlightKey, _ number: UInt64) {
        table.withLock { $0.leave(key, number) }
    }

    /// Ends a flight with its value, which all who wait get.
    func end<Value: Sendable>(_ key: FlightKey, with value: Value) {
        for seat in table.withLock({ $0.end(key) }) {
            // Of one form are seats of one type; any other could only compute for itself.
            if let seat = seat as? FlightSeat<Value> {
                seat.settle(.value(value))
            } else {
                _ = seat.giveLead()
            }
        }
    }

    /// Passes the lead to one who still waits, or ends the flight.
    func handOver(_ key: FlightKey) {
        while let seat = table.withLock({ $0.handOver(key) }) {
            if seat.giveLead() { return }
        }
    }

    /// The error of a computation of `key` that failed less than `span` ago.
    func error(of key: FlightKey, within span: Duration, now: Timestamp) -> (any Error)? {
        failures.withLock { $0.error(of: key, within: span, now: now) }
    }

    /// Notes the error of a computation.
    func note(_ error: any Error, of key: FlightKey, for span: Duration, now: Timestamp) {
        failures.withLock { $0.note(error, of: key, for: span, now: now) }
    }

    /// Forgets the error of a computation.
    func forgetError(of key: FlightKey) {
        failures.withLock { $0.forget(key) }
    }

    /// Counts an event.
    ///
    /// The one place where computing is counted.
    func count(_ event: Event) {
        counts[event.rawValue].value.add(1, ordering: .relaxed)
    }

    /// How often it happened since the cache was opened.
    subscript(event: Event) -> Int {
        counts[event.rawValue].value.load(ordering: .relaxed)
    }

    /// Flights under way and those who wait for them, for tests of what is left behind.
    var inProgress: (flights: Int, waiting: Int) {
        table.withLock { ($0.count, $0.waiting) }
    }
}
