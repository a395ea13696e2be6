// SPDX-License-Identifier: Apache-2.0

import Platform

/// The seat of somebody who waits, whatever he waits for.
protocol AnyFlightSeat: AnyObject, Sendable {
    /// Tells him to lead; false where he does not wait any more.
    func giveLead() -> Bool
}

/// Where one task or thread waits for the computation of another, told exactly once how that ended.
final class FlightSeat<Value: Sendable>: AnyFlightSeat {
    /// How the waiting ended.
    enum Outcome: Sendable {
        case value(Value)
        /// The computation failed, and it is this one's turn.
        case lead
        case timedOut
        case cancelled
    }

    private enum State {
        case vacant
        case suspended(CheckedContinuation<Outcome, Never>)
        case blocked(Monitored<Bool>)
        case settled(Outcome)
    }

    private let state = Locked(State.vacant)

    /// Ends the waiting, unless something else has.
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
        case .suspended(let continuation): continuation.resume(returning: outcome)
        case .blocked(let isSettled):
            isSettled.withLock { $0 = true }
            isSettled.wakeAll()
        }
        return true
    }

    func giveLead() -> Bool { settle(.lead) }

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
            await withCheckedContinuation { continuation in
                let outcome = suspend(continuation)
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            settle(.cancelled)
        }
    }

    /// The outcome where there is one already.
    private func suspend(_ continuation: CheckedContinuation<Outcome, Never>) -> Outcome? {
        state.withLock { state in
            if case .settled(let outcome) = state { return outcome }
            state = .suspended(continuation)
            return nil
        }
    }

    /// Blocks the thread until it is settled or `deadline` passes.
    func wait(until deadline: ContinuousClock.Instant?) -> Outcome {
        let isSettled = Monitored(false)
        let outcome: Outcome? = state.withLock { state in
            if case .settled(let outcome) = state { return outcome }
            state = .blocked(isSettled)
            return nil
        }
        if let outcome { return outcome }
        if isSettled.wait(until: deadline, for: { $0 ? true : nil }) == nil { settle(.timedOut) }
        return state.withLock { state in
            guard case .settled(let outcome) = state else { return .timedOut }
            return outcome
        }
    }
}
