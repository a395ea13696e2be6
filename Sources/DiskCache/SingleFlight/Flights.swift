// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The computations of one cache in this process.
final class Flights: Sendable {
    private let table = Locked(FlightTable<any AnyFlightSeat>())
    private let failures = Locked(FailureMemory())
    private let counters: @Sendable () -> StoreCounters

    /// - Parameter counters: where the cache counts now.
    init(counters: @escaping @Sendable () -> StoreCounters) {
        self.counters = counters
    }

    /// Joins the flight of `key`, or begins it.
    func enter(_ key: FlightKey, _ seat: any AnyFlightSeat) -> FlightTable<any AnyFlightSeat>.Entry {
        table.withLock { $0.enter(key, seat) }
    }

    /// Begins the flight of `key`; false where there is one.
    func begin(_ key: FlightKey) -> Bool {
        table.withLock { $0.begin(key) }
    }

    /// Closes a flight to newcomers: before its leader looks for the value, or stores it.
    func close(_ key: FlightKey) {
        table.withLock { $0.close(key) }
    }

    /// Gives up waiting.
    func leave(_ key: FlightKey, _ number: UInt64) {
        table.withLock { $0.leave(key, number) }
    }

    /// Gives the value of a flight to those who joined before it was closed, and passes the lead to one of the
    /// others, or ends the flight.
    func end<Value: Sendable>(_ key: FlightKey, with value: Value) {
        for seat in table.withLock({ $0.takeOnTime(key) }) {
            // Of one form are seats of one type; any other could only compute for itself.
            if let seat = seat as? FlightSeat<Value> {
                seat.settle(.value(value))
            } else {
                _ = seat.giveLead()
            }
        }
        handOver(key)
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

    /// Counts an event of computing.
    func count(_ event: StoreCounters.Event) {
        counters().add(event)
    }

    /// How often it happened since the cache was opened.
    subscript(event: StoreCounters.Event) -> Int {
        counters()[event]
    }

    /// Flights under way and those who wait for them, for tests of what is left behind.
    var inProgress: (flights: Int, waiting: Int) {
        table.withLock { ($0.count, $0.waiting) }
    }
}
