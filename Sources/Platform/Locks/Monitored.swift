// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A value protected by a mutex, with a condition variable for threads that wait for a change of the value:
/// `pthread_cond_wait`(3).
@safe
package final class Monitored<Value>: Sendable {
    private let state: Locked<Value>
    private nonisolated(unsafe) let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init(_ value: sending Value) {
        state = Locked(value)
        unsafe condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(condition, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe condition.deallocate()
    }

    /// Runs `body` with exclusive access to the value; wakes no waiter.
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock(body)
    }

    /// Wakes one waiter, any of them, to check the value again.
    ///
    /// C: `pthread_cond_signal`.
    package func wakeOne() {
        unsafe pthread_cond_signal(condition)
    }

    /// Wakes all waiters to check the value again.
    ///
    /// C: `pthread_cond_broadcast`.
    package func wakeAll() {
        unsafe pthread_cond_broadcast(condition)
    }

    /// Runs `body` until it returns a value, waiting for a wake-up in between.
    ///
    /// - Parameter deadline: nil to wait without limit.
    /// - Returns: nil if `deadline` has passed.
    package func wait<Result, Failure: Error>(
        until deadline: ContinuousClock.Instant? = nil,
        for body: (inout Value) throws(Failure) -> Result?
    ) throws(Failure) -> Result? {
        let cell = unsafe state.cell
        unsafe pthread_mutex_lock(&cell.pointee.mutex)
        defer { unsafe pthread_mutex_unlock(&cell.pointee.mutex) }
        while true {
            if let result = try unsafe body(&cell.pointee.value) { return result }
            guard let deadline else {
                unsafe pthread_cond_wait(condition, &cell.pointee.mutex)
                continue
            }
            let rest = (deadline - .now).saturatingNanoseconds
            guard rest > 0 else { return nil }
            var limit = (Timestamp(of: CLOCK_MONOTONIC) + .nanoseconds(rest)).fileTime
            unsafe pthread_cond_timedwait(condition, &cell.pointee.mutex, &limit)
        }
    }
}
