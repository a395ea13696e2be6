// SPDX-License-Identifier: Apache-2.0

import Platform

/// The errors of computations that failed recently, for callers that would rather fail at once than compute again.
struct FailureMemory: Sendable {
    /// The number of errors at which those that are too old for any caller are removed.
    ///
    /// An error and its key take a few hundred bytes. If none of the errors is too old, all are removed: with that many
    /// failures at about the same time, every computation fails anyway.
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

    /// Records the error of a computation, for callers that ask for the value within `span`.
    mutating func note(_ error: any Error, of key: FlightKey, for span: Duration, now: Timestamp) {
        if failures.count >= Self.capacity {
            failures = failures.filter { $0.value.moment <= now && now < $0.value.end }
        }
        if failures.count >= Self.capacity { failures.removeAll() }
        failures[key] = Failure(error: error, moment: now, end: now + span)
    }

    /// Removes the error of a key whose value has been computed since.
    mutating func forget(_ key: FlightKey) {
        failures[key] = nil
    }

    /// The number of recorded errors.
    var count: Int { failures.count }
}
