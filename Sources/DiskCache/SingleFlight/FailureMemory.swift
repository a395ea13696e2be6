// SPDX-License-Identifier: Apache-2.0

import Platform

/// The errors of the last failed computations, for callers that would rather fail at once than compute again.
struct FailureMemory: Sendable {
    /// When there are this many, those that nobody asks for any more are forgotten.
    ///
    /// An error and its key take a few hundred bytes. If more keys than this fail at about the same time,
    /// everything fails.
    static let capacity = 1024

    private struct Failure {
        let error: any Error
        let moment: Timestamp
        let end: Timestamp
    }

    private var failures: [FlightKey: Failure] = [:]

    /// The error of a computation that failed less than `span` ago.
    func error(of key: FlightKey, within span: Duration, now: Timestamp) -> (any Error)? {
        guard let failure = failures[key] else { return nil }
        // One in the future was noted before the clock was set back.
        return failure.moment <= now && now < failure.moment + span ? failure.error : nil
    }

    /// Notes an error for callers that ask within `span`.
    mutating func note(_ error: any Error, of key: FlightKey, for span: Duration, now: Timestamp) {
        if failures.count >= Self.capacity {
            failures = failures.filter { $0.value.moment <= now && now < $0.value.end }
        }
        if failures.count >= Self.capacity { failures.removeAll() }
        failures[key] = Failure(error: error, moment: now, end: now + span)
    }

    /// Forgets the error: the value was computed.
    mutating func forget(_ key: FlightKey) {
        failures[key] = nil
    }

    /// How many are kept.
    var count: Int { failures.count }
}
