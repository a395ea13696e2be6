// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// Identifies a computation in this process.
struct FlightKey: Hashable, Sendable {
    /// The key's digest.
    let digest: Digest
    /// The codec's type, which distinguishes the forms of the key's value: bytes or decoded.
    let form: ObjectIdentifier
    /// How many waits of each request in this flight have timed out.
    ///
    /// Such requests compute in parallel with the flights that they waited for.
    var impatience = 0
}

/// The computations in progress in this process, and the requests that wait for them.
///
/// Pure policy: the caller holds a lock while it asks for a decision, and carries out the decision after it has released
/// the lock. A seat is the place of a request that waits for a flight.
///
/// The request that starts a flight leads it. Before the leader looks up the value, and again before it stores the
/// computed value, it closes the flight to newcomers: the value that it finds or stores goes only to requests that joined
/// before, so that it is current as of their calls. Requests that join later wait, too; when the flight ends, one of them
/// leads the next flight and does its own lookup. If a flight fails, one of the waiting requests leads the next flight in
/// the same way.
struct InFlightTable<Seat: Sendable>: Sendable {
    fileprivate struct Flight {
        var seats: [UInt64: Seat] = [:]
        /// The number of the last seat that was taken before the leader closed the flight.
        var lastOnTime: UInt64 = 0
    }

    private var flights: [FlightKey: Flight] = [:]
    private var lastNumber: UInt64 = 0

    /// Joins the flight of `key`, or starts one.
    ///
    /// - Returns: the number of the seat; nil if no flight was in progress, so that the caller leads the new one.
    mutating func enter(_ key: FlightKey, _ seat: Seat) -> UInt64? {
        if begin(key) { return nil }
        lastNumber += 1
        flights[key]?.seats[lastNumber] = seat
        return lastNumber
    }

    /// Starts a flight of `key`; returns false if one is in progress.
    mutating func begin(_ key: FlightKey) -> Bool {
        guard flights[key] == nil else { return false }
        flights[key] = Flight()
        return true
    }

    /// Closes the flight of `key`, possibly again: its leader's later results go only to requests that have joined so
    /// far.
    mutating func close(_ key: FlightKey) {
        // Replaced as a whole, because mutation in place costs three allocations.
        guard var flight = flights[key] else { return }
        flight.lastOnTime = lastNumber
        flights[key] = flight
    }

    /// Removes a seat; no effect if it was removed already.
    mutating func leave(_ key: FlightKey, _ number: UInt64) {
        flights[key]?.seats[number] = nil
    }

    /// Removes and returns the seats that joined before the flight was last closed, to receive its value.
    ///
    /// The flight continues until its lead is handed over.
    mutating func takeOnTime(_ key: FlightKey) -> [Seat] {
        guard let flight = flights[key] else { return [] }
        let onTime = flight.seats.filter { $0.key <= flight.lastOnTime }
        for number in onTime.keys { flights[key]?.seats[number] = nil }
        return Array(onTime.values)
    }

    /// Passes the lead to the request that has waited longest; returns nil and ends the flight if none waits.
    mutating func handOver(_ key: FlightKey) -> Seat? {
        guard let first = flights[key]?.seats.keys.min() else {
            flights[key] = nil
            return nil
        }
        return flights[key]?.seats.removeValue(forKey: first)
    }

    /// The number of flights in progress.
    var count: Int { flights.count }
    /// The number of requests that wait for any flight.
    var waiting: Int { flights.values.reduce(0) { $0 + $1.seats.count } }
}

// For the model of flights in the tests, which records the states that it has visited.
extension InFlightTable: Equatable, Hashable where Seat: Hashable {}
extension InFlightTable.Flight: Equatable, Hashable where Seat: Hashable {}
