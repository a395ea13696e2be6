// SPDX-License-Identifier: Apache-2.0

import Platform

/// One call from its beginning to its end, which comes once, from whomever is first.
///
/// As long as it waits for a line it ends at once when it is cancelled or its time is over. When it has one,
/// its thread is woken and ends it: descriptors and closures are used until then.
final class Call: Sendable {
    typealias Outcome = Result<TransportResponse, TransportError>
    typealias Completion = @Sendable (Outcome) -> Void

    private struct State {
        var completion: Completion?
        /// The one that transfers.
        var line: Line?
        var isCancelled = false
        /// Ends it at its deadline while it waits for a line.
        var alarm: Task<Void, Never>?
    }

    /// Longer limits are none; about what the clock can be asked for.
    private static let longest: Duration = .seconds(100 * 365 * 86_400)

    let request: TransportRequest
    /// From when on it is too late.
    let deadline: ContinuousClock.Instant?
    /// Where the body goes, if somebody reads it as it comes.
    let pieces: Pieces?
    private let state = Locked(State())

    init(_ request: TransportRequest, _ pieces: Pieces? = nil) {
        self.request = request
        self.pieces = pieces
        deadline = request.timeLimit.flatMap { limit in
            limit > Self.longest ? nil : ContinuousClock.now + max(limit, .zero)
        }
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
        let (isTaken, alarm) = state.withLock { state in
            guard state.completion != nil else { return (false, state.alarm.take()) }
            state.line = line
            return (true, state.alarm.take())
        }
        alarm?.cancel()
        return isTaken
    }

    /// Whether there is no need for a line any more.
    var hasEnded: Bool { state.withLock { $0.completion == nil } }

    /// Its line is not to be woken any more.
    func release() {
        state.withLock { $0.line = nil }
    }

    func finish(_ outcome: Outcome) {
        let (completion, alarm) = state.withLock { state in
            state.line = nil
            return (state.completion.take(), state.alarm.take())
        }
        alarm?.cancel()
        completion?(outcome)
    }

    func cancel() {
        pieces?.close()
        let completion: Completion? = state.withLock { state in
            state.isCancelled = true
            guard let line = state.line else { return state.completion.take() }
            // A system call under the lock, as once let go the line might transfer for somebody else.
            line.wake()
            return nil
        }
        completion?(.failure(cancelled))
    }

    /// Has it end at its deadline if it still waits for a line then: in a queue nobody looks at the clock.
    func setAlarm() {
        guard let deadline else { return }
        let alarm = Task {
            do {
                try await Task.sleep(until: deadline, clock: .continuous)
            } catch {
                // Nobody waits for it any more.
                return
            }
            expire()
        }
        let isNeeded = state.withLock { state in
            guard state.completion != nil, state.line == nil else { return false }
            state.alarm = alarm
            return true
        }
        if !isNeeded { alarm.cancel() }
    }

    private func expire() {
        let completion = state.withLock { $0.line == nil ? $0.completion.take() : nil }
        completion?(.failure(timedOut))
    }

    var cancelled: TransportError { TransportError(.cancelled, "\(request.place): cancelled") }
    var noThread: TransportError {
        TransportError(.noResources, "\(request.place): there may be no more threads")
    }
    var timedOut: TransportError { TransportError(.timedOut, "\(request.place): not done in time") }
}
