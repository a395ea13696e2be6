// SPDX-License-Identifier: Apache-2.0

import Platform

/// The errors of recent failed computations, for callers that prefer to fail at once over computing again.
struct FailureMemory: Sendable {
    /// At this number of errors, those that are too old for any caller are removed.
    ///
    /// An error and its key take a few hundred bytes. If all of them are recent, all are removed: with that many failures at
    /// about the same time, everything fails.
    static let capacity = 1024

    private struct Failure {
        let error: any Error
        let moment: Timestamp
        let end: Timestamp
    }

    private var failures: [FlightKey: Failure] = [:]

    /// Returns the error of a computation that failed less than `span` ago.
    func error(of key: FlightKey, within span: Duration, now: Timestamp) -> (any Error)? {
        guard let failure = failures[key] else { return nil }
        // A time in the future was recorded before the clock was set back.
        return failure.moment <= now && now < failure.moment + span ? failure.error : nil
    }

    /// Records an error for callers that ask within `span`.
    mutating func note(_ error: any Error, of key: FlightKey, for span: Duration, now: Timestamp) {
        if failures.count >= Self.capacity {
            failures = failures.filter { $0.value.moment <= now && now < $0.value.end }
        }
        if failures.count >= Self.capacity { failures.removeAll() }
        failures[key] = Failure(error: error, moment: now, end: now + span)
    }

    /// Removes the error once the value is computed.
    mutating func forget(_ key: FlightKey) {
        failures[key] = nil
    }

    /// The number of recorded errors.
    var count: Int { failures.count }
}
