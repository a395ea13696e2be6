// SPDX-License-Identifier: Apache-2.0

import Platform

/// Where a task or thread waits for another one's computation, and is told exactly once how that ended.
final class FlightSeat: Sendable {
    /// How the waiting ended.
    enum Outcome: Sendable {
        case value(any Sendable)
        /// The computation failed, and it is this one's turn.
        case lead
        case timedOut
        case cancelled
    }

    private enum State {
        case vacant
        case taken(@Sendable (Outcome) -> Void)
        case settled(Outcome)
    }

    private let state = Locked(State.vacant)

    /// Ends the waiting; false if something else has.
    @discardableResult
    func settle(_ outcome: Outcome) -> Bool {
        let previous = state.withLock { state in
            let previous = state
            if case .settled = state { return previous }
            state = .settled(outcome)
            return previous
        }
        switch previous {
        case .settled: return false
        case .vacant: break
        case .taken(let tell): tell(outcome)
        }
        return true
    }

    /// Tells the outcome, now or once it is settled.
    private func take(_ tell: @escaping @Sendable (Outcome) -> Void) {
        let outcome: Outcome? = state.withLock { state in
            if case .settled(let outcome) = state { return outcome }
            state = .taken(tell)
            return nil
        }
        if let outcome { tell(outcome) }
    }

    /// Suspends the task until it is settled, `deadline` passes or the task is cancelled.
    func wait(until deadline: ContinuousClock.Instant?) async -> Outcome {
        let timer = deadline.map { deadline in
            Task {
                do {
                    try await Task.sleep(until: deadline, clock: .continuous)
                    settle(.timedOut)
                } catch {
                    return
                }
            }
        }
        defer { timer?.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in take { continuation.resume(returning: $0) } }
        } onCancel: {
            settle(.cancelled)
        }
    }

    /// Blocks the thread until it is settled or `deadline` passes.
    func wait(until deadline: ContinuousClock.Instant?) -> Outcome {
        let told = Monitored<Outcome?>(nil)
        take { outcome in
            told.withLock { $0 = outcome }
            told.wakeAll()
        }
        if let outcome = told.wait(until: deadline, for: { $0 }) { return outcome }
        settle(.timedOut)
        // The one that was faster is just telling the outcome.
        return told.wait(until: nil, for: { $0 }) ?? .timedOut
    }
}
