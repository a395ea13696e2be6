// SPDX-License-Identifier: Apache-2.0

import Platform

/// One transfer, which ends exactly once: by completion, cancellation or its deadline, whichever comes first.
///
/// While the transfer waits for a session, cancellation and the deadline end it at once. Once it has a session,
/// cancellation wakes its thread, and the thread ends the transfer, also at the deadline: until then it uses descriptors
/// and closures.
final class Transfer: Sendable {
    typealias Outcome = Result<TransportResponse, TransportError>
    typealias Completion = @Sendable (Outcome) -> Void

    private struct State {
        var completion: Completion?
        /// Wakes the thread that performs the transfer; nil if no thread does.
        var wake: (@Sendable () -> Void)?
        var isCancelled = false
        /// Ends the transfer at its deadline while it waits for a session.
        var alarm: Task<Void, Never>?
    }

    /// A longer limit counts as no limit; this is about the maximum of the clock.
    private static let longest: Duration = .seconds(100 * 365 * 86_400)

    let request: TransportRequest
    /// The end of the time limit; nil if there is none.
    let deadline: ContinuousClock.Instant?
    private let state = Locked(State())

    init(_ request: TransportRequest) {
        self.request = request
        deadline = request.timeLimit.flatMap { limit in
            limit > Self.longest ? nil : ContinuousClock.now + max(limit, .zero)
        }
    }

    /// Returns whether to perform the transfer; if it is already cancelled, calls `completion` and returns false.
    func start(_ completion: @escaping Completion) -> Bool {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.completion = completion }
            return state.isCancelled
        }
        if isCancelled { completion(.failure(cancelled)) }
        return !isCancelled
    }

    /// Begins the transfer on the calling thread; returns false if it has already ended.
    ///
    /// - Parameter wake: wakes that thread; it may be called until ``release()``.
    func begin(wake: @escaping @Sendable () -> Void) -> Bool {
        let (isTaken, alarm) = state.withLock { state in
            guard state.completion != nil else { return (false, state.alarm.take()) }
            state.wake = wake
            return (true, state.alarm.take())
        }
        alarm?.cancel()
        return isTaken
    }

    /// Whether the transfer has ended, so that it needs no session.
    var hasEnded: Bool { state.withLock { $0.completion == nil } }

    /// Ensures that cancellation no longer wakes the transfer's thread.
    func release() {
        state.withLock { $0.wake = nil }
    }

    func finish(_ outcome: Outcome) {
        let (completion, alarm) = state.withLock { state in
            state.wake = nil
            return (state.completion.take(), state.alarm.take())
        }
        alarm?.cancel()
        completion?(outcome)
    }

    func cancel() {
        let completion: Completion? = state.withLock { state in
            state.isCancelled = true
            guard let wake = state.wake else { return state.completion.take() }
            // This system call is made under the lock, because after a release the thread might perform another transfer.
            wake()
            return nil
        }
        completion?(.failure(cancelled))
    }

    /// Starts a task that ends the transfer at its deadline if it still waits for a session; the queue does not check the
    /// clock.
    func setAlarm() {
        guard let deadline else { return }
        let alarm = Task {
            do {
                try await Task.sleep(until: deadline, clock: .continuous)
            } catch {
                // The transfer no longer waits.
                return
            }
            expire()
        }
        let isNeeded = state.withLock { state in
            guard state.completion != nil, state.wake == nil else { return false }
            state.alarm = alarm
            return true
        }
        if !isNeeded { alarm.cancel() }
    }

    private func expire() {
        let completion = state.withLock { $0.wake == nil ? $0.completion.take() : nil }
        completion?(.failure(timedOut))
    }

    var cancelled: TransportError { TransportError(.cancelled, "\(request.place): cancelled") }
    var noThread: TransportError {
        TransportError(.noResources, "\(request.place): a thread can't be created")
    }
    var timedOut: TransportError { TransportError(.timedOut, "\(request.place): not done in time") }
}
