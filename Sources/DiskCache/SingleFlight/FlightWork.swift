// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// A call's closure, which computes a value or decides the key's outcome.
///
/// The closure is stored as passed in: to wrap it in another closure would cost an allocation per call.
enum FlightWork<Value: Sendable, Failure: Error>: Sendable {
    case value(@Sendable () throws(Failure) -> Value)
    case outcome(@Sendable (Computation<Value>) throws(Failure) -> Computed<Value>)

    /// Whether the closure receives the previous value.
    var seesPrevious: Bool {
        if case .outcome = self { true } else { false }
    }

    /// Runs the closure.
    ///
    /// - Parameter terms: the options of the value if the closure returns only a value.
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

/// The asynchronous form of ``FlightWork``.
enum AsyncFlightWork<Value: Sendable, Failure: Error>: Sendable {
    case value(@Sendable () async throws(Failure) -> Value)
    case outcome(@Sendable (Computation<Value>) async throws(Failure) -> Computed<Value>)

    /// Whether the closure receives the previous value.
    var seesPrevious: Bool {
        if case .outcome = self { true } else { false }
    }

    /// Runs the closure in this task.
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

/// A flight's result for the requests that joined it; the hit is nil if the key has no value.
struct FlightAnswer<Value: Sendable>: Sendable {
    let hit: CacheHit<Value>?
}

/// Why a request ended without an answer.
enum FlightFailure<Failure: Error>: Error {
    /// Another caller was still computing the value at the wait limit; its process, or nil if that is not known.
    case timedOut(ComputingProcess?)
    /// The task was cancelled while it waited.
    case cancelled
    /// The closure's decision is invalid.
    case refused(CacheError)
    /// The closure failed.
    case computation(Failure)

    /// A description for an event, which reports the failure if no caller waits for the result.
    var reason: String {
        switch self {
        case .timedOut, .cancelled: "it was cancelled"
        case .refused(let error): "\(error)"
        case .computation(let error): "\(error)"
        }
    }
}
