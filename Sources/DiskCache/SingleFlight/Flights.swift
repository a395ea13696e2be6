// SPDX-License-Identifier: Apache-2.0

import Platform

/// The single-flight computations of one cache in this process.
final class Flights: Sendable {
    let table = Locked(InFlightTable<FlightWaiter>())
    let failures = Locked(FailureMemory())

    /// Gives the result of a flight, if it succeeded, to the requests that joined before the flight was last closed, and
    /// passes the lead to one of the other requests.
    ///
    /// If no other request waits, the flight ends.
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
