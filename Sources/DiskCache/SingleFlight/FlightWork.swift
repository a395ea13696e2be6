// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// The closure of a call: it makes a value, or decides what becomes of the key.
///
/// As it was given: one closure around another would be one allocation more for each call.
enum FlightWork<Value: Sendable, Failure: Error>: Sendable {
    case value(@Sendable () throws(Failure) -> Value)
    case outcome(@Sendable (Computation<Value>) throws(Failure) -> Computed<Value>)

    /// Whether it is told what is there.
    var seesPrevious: Bool {
        if case .outcome = self { true } else { false }
    }

    /// Runs it.
    ///
    /// - Parameter terms: how to store a value that comes without.
    func run(_ computation: Computation<Value>, _ terms: PutOptions) -> Result<Computed<Value>, Failure> {
        do throws(Failure) {
            switch self {
            case .value(let compute): return .success(.value(try compute(), terms))
            case .outcome(let decide): return .success(try decide(computation))
            }
        } catch {
            return .failure(error)
        }
    }
}

/// The same for a closure that awaits.
enum AsyncFlightWork<Value: Sendable, Failure: Error>: Sendable {
    case value(@Sendable () async throws(Failure) -> Value)
    case outcome(@Sendable (Computation<Value>) async throws(Failure) -> Computed<Value>)

    /// Whether it is told what is there.
    var seesPrevious: Bool {
        if case .outcome = self { true } else { false }
    }

    /// Runs it in this task.
    func run(
        _ computation: Computation<Value>,
        _ terms: PutOptions
    ) async -> Result<Computed<Value>, Failure> {
        do throws(Failure) {
            switch self {
            case .value(let compute): return .success(.value(try await compute(), terms))
            case .outcome(let decide): return .success(try await decide(computation))
            }
        } catch {
            return .failure(error)
        }
    }
}

/// What a flight hands to those who have joined it; nil: there is no value.
struct FlightAnswer<Value: Sendable>: Sendable {
    let hit: CacheHit<Value>?
}

/// Why a request ended without an answer.
enum FlightFailure<Failure: Error>: Error {
    /// Another caller is computing the value, in this process if it is known, and was not done within the limit.
    case timedOut(ComputingProcess?)
    /// The task was cancelled while it waited.
    case cancelled
    /// The closure has decided what can't be.
    case refused(CacheError)
    /// The closure failed.
    case computation(Failure)

    /// What came of it, as it is reported where nobody waits for it.
    var reason: String {
        switch self {
        case .timedOut, .cancelled: "it was given up"
        case .refused(let error): "\(error)"
        case .computation(let error): "\(error)"
        }
    }
}
