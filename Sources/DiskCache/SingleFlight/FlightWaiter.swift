// SPDX-License-Identifier: Apache-2.0

import Platform

/// A task's or thread's wait for another caller's computation; it ends exactly once.
final class FlightWaiter: Sendable {
    /// How a wait ended.
    enum Outcome: Sendable {
        /// The leader's result, a ``FlightAnswer``.
        case value(any Sendable)
        /// This waiter leads the flight from now on.
        case lead
        case timedOut
        case cancelled
    }

    /// How the wait has ended; nil if it has not.
    var outcome: Outcome? { state.withLock { $0.outcome } }

    private struct State {
        var outcome: Outcome?
        /// The waiting task.
        var task: CheckedContinuation<Outcome, Never>?
    }

    private let state = Monitored(State())

    /// Ends the wait; returns false if it had already ended.
    @discardableResult
    func settle(_ outcome: Outcome) -> Bool {
        let (isNew, task) = state.withLock { state in
            let isNew = state.outcome == nil
            if isNew { state.outcome = outcome }
            return (isNew, state.task.take())
        }
        if isNew { state.wakeAll() }
        task?.resume(returning: outcome)
        return isNew
    }

    /// Suspends the task until the wait is settled, `deadline` passes or the task is cancelled.
    func wait(until deadline: ContinuousClock.Instant?) async -> Outcome {
        let timer = deadline.map { deadline in
            Task {
                // The sleep is cancelled if the wait ends first.
                if (try? await Task.sleep(until: deadline, clock: .continuous)) != nil { settle(.timedOut) }
            }
        }
        defer { timer?.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Outcome, Never>) in
                let outcome: Outcome? = state.withLock { state in
                    if state.outcome == nil { state.task = continuation }
                    return state.outcome
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            settle(.cancelled)
        }
    }

    /// Blocks the thread until the wait is settled or `deadline` passes.
    func wait(until deadline: ContinuousClock.Instant?) -> Outcome {
        if let outcome = state.wait(until: deadline, for: { $0.outcome }) { return outcome }
        settle(.timedOut)
        // Another thread may have settled it first.
        return state.withLock { $0.outcome } ?? .timedOut
    }
}
