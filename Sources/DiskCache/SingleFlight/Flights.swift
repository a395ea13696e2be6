// SPDX-License-Identifier: Apache-2.0

import Platform

/// The single-flight computations of one cache in this process.
final class Flights: Sendable {
    let table = Locked(InFlightTable<FlightWaiter>())
    let failures = Locked(FailureMemory())

    /// Delivers a flight's result, if it succeeded, to the requests that joined before it was closed, and hands over the
    /// lead to one of the others.
    ///
    /// If none waits, the flight ends.
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
