// SPDX-License-Identifier: Apache-2.0

import Platform

/// The computations of one cache in this process.
final class Flights: Sendable {
    let table = Locked(FlightTable<FlightSeat>())
    let failures = Locked(FailureMemory())

    /// Gives the answer of a flight, if there is one, to those that joined before it was closed, and the lead to
    /// one of the others; if none waits, the flight is over.
    func end<Value: Sendable>(_ key: FlightKey, with end: Result<CacheHit<Value>?, some Error>) {
        if case .success(let hit) = end {
            for seat in table.withLock({ $0.takeOnTime(key) }) {
                seat.settle(.value(FlightAnswer(hit: hit)))
            }
        }
        while let seat = table.withLock({ $0.handOver(key) }) {
            if seat.settle(.lead) { return }
        }
    }
}
