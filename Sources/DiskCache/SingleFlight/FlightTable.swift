// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// What a computation in this process is of.
struct FlightKey: Hashable, Sendable {
    /// Of the key.
    let digest: Digest
    /// Tells the forms of its value apart: bytes, decoded ones.
    let form: ObjectIdentifier
    /// How often those who take part have waited in vain: they compute beside the ones that they waited for.
    var impatience = 0
}

/// Who computes what in this process, and who waits for it: decisions only, made under a lock and carried
/// out outside.
///
/// A flight is begun by who leads it. It ends with its value, for all who wait; where it has none the
/// lead passes to one of them, and the others go on waiting.
struct FlightTable<Seat: Sendable>: Sendable {
    /// What somebody who wants the value is to do.
    enum Entry: Equatable {
        /// Nobody computes it: he does.
        case lead
        /// He waits on the seat that he brought, which is known by this number.
        case wait(UInt64)
    }

    private var flights: [FlightKey: [UInt64: Seat]] = [:]
    private var lastNumber: UInt64 = 0

    /// Joins the flight of `key`, or begins it.
    mutating func enter(_ key: FlightKey, _ seat: Seat) -> Entry {
        guard flights[key] != nil else {
            flights[key] = [:]
            return .lead
        }
        lastNumber += 1
        flights[key]?[lastNumber] = seat
        return .wait(lastNumber)
    }

    /// Begins the flight of `key`; false where there is one.
    mutating func begin(_ key: FlightKey) -> Bool {
        guard flights[key] == nil else { return false }
        flights[key] = [:]
        return true
    }

    /// Gives up waiting; nothing where the seat was taken from the table already.
    mutating func leave(_ key: FlightKey, _ number: UInt64) {
        flights[key]?[number] = nil
    }

    /// Ends the flight: whom to give its value.
    mutating func end(_ key: FlightKey) -> [Seat] {
        guard let seats = flights.removeValue(forKey: key) else { return [] }
        return Array(seats.values)
    }

    /// Passes the lead to who has waited longest; nil: nobody waits, and the flight is over.
    mutating func handOver(_ key: FlightKey) -> Seat? {
        guard let first = flights[key]?.keys.min() else {
            flights[key] = nil
            return nil
        }
        return flights[key]?.removeValue(forKey: first)
    }

    /// Flights under way.
    var count: Int { flights.count }
    /// Those who wait for any of them.
    var waiting: Int { flights.values.reduce(0) { $0 + $1.count } }
}
