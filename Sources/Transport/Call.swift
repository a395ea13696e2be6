// SPDX-License-Identifier: Apache-2.0

import Platform

/// One call, which ends exactly once, by whatever comes first.
///
/// While it waits for a line, cancellation and its deadline end it at once. When it has one, they wake its thread, which
/// ends it: descriptors and closures are used until then.
final class Call: Sendable {
    typealias Outcome = Result<TransportResponse, TransportError>
    typealias Completion = @Sendable (Outcome) -> Void

    private struct State {
        var completion: Completion?
        /// The line that transfers.
        var line: Line?
        var isCancelled = false
        /// Ends the call at its deadline while it waits for a line.
        var alarm: Task<Void, Never>?
    }

    /// Longer limits count as none; about the maximum of the clock.
    private static let longest: Duration = .seconds(100 * 365 * 86_400)

    let request: TransportRequest
    /// When the time limit ends.
    let deadline: ContinuousClock.Instant?
    private let state = Locked(State())

    init(_ request: TransportRequest) {
        self.request = request
        deadline = request.timeLimit.flatMap { limit in
            limit > Self.longest ? nil : ContinuousClock.now + max(limit, .zero)
        }
    }

    /// Returns whether to perform the call; if it was cancelled before, calls `completion` and returns false.
    func start(_ completion: @escaping Completion) -> Bool {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.completion = completion }
            return state.isCancelled
        }
        if isCancelled { completion(.failure(cancelled)) }
        return !isCancelled
    }

    /// Returns whether `line`, with its wake-ups discarded, may transfer; otherwise the call has already ended.
    func take(_ line: Line) -> Bool {
        let (isTaken, alarm) = state.withLock { state in
            guard state.completion != nil else { return (false, state.alarm.take()) }
            state.line = line
            return (true, state.alarm.take())
        }
        alarm?.cancel()
        return isTaken
    }

    /// Whether the call needs no line any more.
    var hasEnded: Bool { state.withLock { $0.completion == nil } }

    /// Stops the waking of its line.
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
        let completion: Completion? = state.withLock { state in
            state.isCancelled = true
            guard let line = state.line else { return state.completion.take() }
            // A system call under the lock, since a released line might transfer for another call.
            line.wake()
            return nil
        }
        completion?(.failure(cancelled))
    }

    /// Ends the call at its deadline if it still waits for a line then; the queue does not check the clock.
    func setAlarm() {
        guard let deadline else { return }
        let alarm = Task {
            do {
                try await Task.sleep(until: deadline, clock: .continuous)
            } catch {
                // The call no longer waits.
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
