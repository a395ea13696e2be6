// SPDX-License-Identifier: Apache-2.0

import Platform

/// Where a task or thread waits for another one's computation, and is told exactly once how that ended.
final class FlightSeat: Sendable {
    /// How the waiting ended.
    enum Outcome: Sendable {
        /// A ``FlightAnswer``.
        case value(any Sendable)
        /// The computation failed, and it is this one's turn.
        case lead
        case timedOut
        case cancelled
    }

    /// How the waiting has ended; nil: it has not.
    var outcome: Outcome? { state.withLock { $0.outcome } }

    private struct State {
        var outcome: Outcome?
        /// The task that waits.
        var task: CheckedContinuation<Outcome, Never>?
    }

    private let state = Monitored(State())

    /// Ends the waiting; false if something else has.
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

    /// Suspends the task until it is settled, `deadline` passes or the task is cancelled.
    func wait(until deadline: ContinuousClock.Instant?) async -> Outcome {
        let timer = deadline.map { deadline in
            Task {
                // Cancelled where the waiting has ended before.
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

    /// Blocks the thread until it is settled or `deadline` passes.
    func wait(until deadline: ContinuousClock.Instant?) -> Outcome {
        if let outcome = state.wait(until: deadline, for: { $0.outcome }) { return outcome }
        settle(.timedOut)
        // Unless somebody else was faster.
        return state.withLock { $0.outcome } ?? .timedOut
    }
}
