// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The computations of one cache in this process.
final class Flights: Sendable {
    let table = Locked(FlightTable<FlightSeat>())
    let failures = Locked(FailureMemory())
    private let counters: @Sendable () -> StoreCounters

    /// - Parameter counters: where the cache counts now.
    init(counters: @escaping @Sendable () -> StoreCounters) {
        self.counters = counters
    }

    /// Gives the value of a flight, if there is one, to those that joined before it was closed, and the lead to
    /// one of the others; if none waits, the flight is over.
    func end(_ key: FlightKey, with value: (any Sendable)?) {
        if let value {
            for seat in table.withLock({ $0.takeOnTime(key) }) { seat.settle(.value(value)) }
        }
        while let seat = table.withLock({ $0.handOver(key) }) {
            if seat.settle(.lead) { return }
        }
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
