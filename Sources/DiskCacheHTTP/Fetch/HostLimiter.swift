// SPDX-License-Identifier: Apache-2.0

import Platform

/// Limits the number of concurrent requests to each server; further requests wait in a queue without blocking a thread.
final class HostLimiter: Sendable {
    private struct Host {
        var busy = 0
        var line: [(number: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
    }

    private struct State {
        var hosts: [String: Host] = [:]
        var last: UInt64 = 0
        /// Requests that were cancelled before they entered the queue.
        var cancelled: Set<UInt64> = []
    }

    private let limit: Int
    private let state = Locked(State())

    init(limit: Int) {
        self.limit = max(1, limit)
    }

    /// Waits for a turn, which lasts until ``leave(_:)``; returns false if `deadline` passes first.
    ///
    /// - Throws: `CancellationError`; the caller then has no turn.
    func enter(
        _ origin: String,
        until deadline: ContinuousClock.Instant? = nil
    ) async throws(CancellationError) -> Bool {
        let number: UInt64 = state.withLock { state in
            state.last += 1
            return state.last
        }
        let alarm = Locked<Task<Void, Never>?>.Box(nil)
        let isIn = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                let answer: Bool? = state.withLock { state in
                    if state.cancelled.remove(number) != nil { return false }
                    var host = state.hosts[origin] ?? Host()
                    defer { state.hosts[origin] = host }
                    if host.busy < limit {
                        host.busy += 1
                        return true
                    }
                    host.line.append((number, continuation))
                    return nil
                }
                if let answer {
                    continuation.resume(returning: answer)
                } else if let deadline {
                    // The request is already in the queue, or has left it.
                    let task = Task { [self] in
                        // Throws only if the task is cancelled.
                        guard (try? await Task.sleep(until: deadline, clock: .continuous)) != nil else {
                            return
                        }
                        leaveLine(number, origin)?.resume(returning: false)
                    }
                    alarm.value.withLock { $0 = task }
                }
            }
        } onCancel: {
            giveUp(number, origin)
        }
        alarm.value.withLock { $0 }?.cancel()
        // A cancellation after the wait has ended inserts the number, which nobody else would remove.
        state.withLock { _ = $0.cancelled.remove(number) }
        if !isIn, Task.isCancelled { throw CancellationError() }
        return isIn
    }

    /// Removes a request from the queue; returns nil if the request is no longer there.
    private func leaveLine(_ number: UInt64, _ origin: String) -> CheckedContinuation<Bool, Never>? {
        state.withLock { state in
            guard let place = state.hosts[origin]?.line.firstIndex(where: { $0.number == number }) else {
                return nil
            }
            return state.hosts[origin]?.line.remove(at: place).continuation
        }
    }

    private func giveUp(_ number: UInt64, _ origin: String) {
        let waiting: CheckedContinuation<Bool, Never>? = state.withLock { state in
            guard let place = state.hosts[origin]?.line.firstIndex(where: { $0.number == number }) else {
                state.cancelled.insert(number)
                return nil
            }
            return state.hosts[origin]?.line.remove(at: place).continuation
        }
        waiting?.resume(returning: false)
    }

    /// Ends a turn, and passes it to the request that has waited longest.
    func leave(_ origin: String) {
        let next: CheckedContinuation<Bool, Never>? = state.withLock { state in
            guard var host = state.hosts[origin] else { return nil }
            if !host.line.isEmpty {
                let first = host.line.removeFirst()
                state.hosts[origin] = host
                return first.continuation
            }
            host.busy -= 1
            state.hosts[origin] = host.busy == 0 ? nil : host
            return nil
        }
        next?.resume(returning: true)
    }
}
