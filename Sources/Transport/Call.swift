// SPDX-License-Identifier: Apache-2.0

import Platform

/// One call from its beginning to its end, which comes once, from whomever is first.
///
/// As long as it waits for a line it ends at once when it is cancelled or its time is over. When it has one, its thread
/// is woken and ends it: descriptors and closures are used until then.
final class Call: Sendable {
    typealias Outcome = Result<TransportResponse, TransportError>
    typealias Completion = @Sendable (Outcome) -> Void

    private struct State {
        var completion: Completion?
        /// The one that transfers.
        var line: Line?
        var isCancelled = false
    }

    let request: TransportRequest
    /// From when on it is too late.
    let deadline: ContinuousClock.Instant?
    private let state = Locked(State())

    init(_ request: TransportRequest) {
        self.request = request
        deadline = request.timeLimit.map { ContinuousClock.now + $0 }
    }

    /// Whether it is to be done; otherwise it was cancelled before, and `completion` was called.
    func start(_ completion: @escaping Completion) -> Bool {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.completion = completion }
            return state.isCancelled
        }
        if isCancelled { completion(.failure(cancelled)) }
        return !isCancelled
    }

    /// Whether `line`, which was begun anew, may transfer; otherwise it has ended already.
    func take(_ line: Line) -> Bool {
        state.withLock { state in
            guard state.completion != nil else { return false }
            state.line = line
            return true
        }
    }

    /// Whether there is no need for a line any more.
    var hasEnded: Bool { state.withLock { $0.completion == nil } }

    /// Its line is not to be woken any more.
    func release() {
        state.withLock { $0.line = nil }
    }

    func finish(_ outcome: Outcome) {
        let completion = state.withLock { state in
            state.line = nil
            return state.completion.take()
        }
        completion?(outcome)
    }

    func cancel() {
        let completion: Completion? = state.withLock { state in
            state.isCancelled = true
            guard let line = state.line else { return state.completion.take() }
            // A system call under the lock, as once let go the line might transfer for somebody else.
            line.wake()
            return nil
        }
        completion?(.failure(cancelled))
    }

    /// Ends it if it still waits for a line.
    func expire() {
        let completion = state.withLock { $0.line == nil ? $0.completion.take() : nil }
        completion?(.failure(timedOut))
    }

    var cancelled: TransportError { TransportError(.cancelled, "\(request.place): cancelled") }
    var timedOut: TransportError { TransportError(.timedOut, "\(request.place): not done in time") }
}
