// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// What a computation in this process is of.
struct FlightKey: Hashable, Sendable {
    /// Of the key.
    let digest: Digest
    /// Tells the forms of its value apart: bytes, decoded ones.
    let form: ObjectIdentifier
    /// How often those that take part have waited in vain: they compute beside the ones they waited for.
    var impatience = 0
}

/// Who computes what in this process, and who waits for it.
///
/// It only decides: decisions are made under a lock and carried out without it.
///
/// The request that begins a flight leads it. Before the leader looks whether the value is there, and again
/// before it stores what it has computed, it closes the flight to newcomers: what it finds or stores goes to
/// those that joined before, and is never older than their calls. Those that come later wait too; once the
/// flight is over, one of them leads next and looks for itself. If there is no value, one of the waiting
/// requests does the same.
struct FlightTable<Seat: Sendable>: Sendable {
    fileprivate struct Flight {
        var seats: [UInt64: Seat] = [:]
        /// The last seat that was taken before the leader closed the flight.
        var lastOnTime: UInt64 = 0
    }

    private var flights: [FlightKey: Flight] = [:]
    private var lastNumber: UInt64 = 0

    /// Joins the flight of `key`, or begins it.
    ///
    /// - Returns: the number by which the seat to wait on is known; nil: nobody computes the value, so lead.
    mutating func enter(_ key: FlightKey, _ seat: Seat) -> UInt64? {
        if begin(key) { return nil }
        lastNumber += 1
        flights[key]?.seats[lastNumber] = seat
        return lastNumber
    }

    /// Begins the flight of `key`; false if there is one.
    mutating func begin(_ key: FlightKey) -> Bool {
        guard flights[key] == nil else { return false }
        flights[key] = Flight()
        return true
    }

    /// Closes the flight of `key`, or once more: what its leader stores or finds from now on is for those who
    /// have joined so far.
    mutating func close(_ key: FlightKey) {
        // As a whole: to change it in place takes three allocations.
        guard var flight = flights[key] else { return }
        flight.lastOnTime = lastNumber
        flights[key] = flight
    }

    /// Gives up waiting; does nothing if the seat was taken from the table already.
    mutating func leave(_ key: FlightKey, _ number: UInt64) {
        flights[key]?.seats[number] = nil
    }

    /// Takes out those that joined before the flight was last closed, to be given its value.
    ///
    /// The flight continues until the lead is passed.
    mutating func takeOnTime(_ key: FlightKey) -> [Seat] {
        guard let flight = flights[key] else { return [] }
        let onTime = flight.seats.filter { $0.key <= flight.lastOnTime }
        for number in onTime.keys { flights[key]?.seats[number] = nil }
        return Array(onTime.values)
    }

    /// Passes the lead to the request that has waited longest; nil if none waits, and the flight is over.
    mutating func handOver(_ key: FlightKey) -> Seat? {
        guard let first = flights[key]?.seats.keys.min() else {
            flights[key] = nil
            return nil
        }
        return flights[key]?.seats.removeValue(forKey: first)
    }

    /// Flights under way.
    var count: Int { flights.count }
    /// The requests that wait for any of them.
    var waiting: Int { flights.values.reduce(0) { $0 + $1.seats.count } }
}

// The model of flights tells the states apart that it has seen.
extension FlightTable: Equatable, Hashable where Seat: Hashable {}
extension FlightTable.Flight: Equatable, Hashable where Seat: Hashable {}
