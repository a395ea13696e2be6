// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A value behind a mutex together with a condition, for threads that wait until the value is as they need
/// it: pthread_cond_wait(3), which ThreadSanitizer knows.
@safe
package final class Monitored<Value>: Sendable {
    private nonisolated(unsafe) let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private nonisolated(unsafe) let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    /// Read and written only while the mutex is held; apart, as accesses to a variable of an object are checked
    /// at run time.
    private nonisolated(unsafe) let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    package init(_ value: sending Value) {
        unsafe self.value.initialize(to: value)
        unsafe mutex.initialize(to: pthread_mutex_t())
        unsafe condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_mutex_init(mutex, nil)
        unsafe pthread_cond_init(condition, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
        unsafe value.deinitialize(count: 1)
        unsafe value.deallocate()
    }

    /// Runs `body` with the value, alone; wakes nobody.
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return try unsafe body(&value.pointee)
    }

    /// Lets one of those who wait look at the value again, whichever.
    ///
    /// C: `pthread_cond_signal`.
    package func wakeOne() {
        unsafe pthread_cond_signal(condition)
    }

    /// Lets all who wait look at the value again.
    ///
    /// C: `pthread_cond_broadcast`.
    package func wakeAll() {
        unsafe pthread_cond_broadcast(condition)
    }

    /// Runs `body` until it gives something, waiting for a wake-up in between; nil once `deadline` has
    /// passed (nil: there is none).
    package func wait<Result, Failure: Error>(
        until deadline: ContinuousClock.Instant? = nil,
        for body: (inout Value) throws(Failure) -> Result?
    ) throws(Failure) -> Result? {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        while true {
            if let result = try unsafe body(&value.pointee) { return result }
            guard let deadline else {
                unsafe pthread_cond_wait(condition, mutex)
                continue
            }
            let rest = (deadline - .now).saturatingNanoseconds
            guard rest > 0 else { return nil }
            var time = timespec()
            unsafe clock_gettime(CLOCK_MONOTONIC, &time)
            var limit = (Timestamp(time) + .nanoseconds(rest)).fileTime
            unsafe pthread_cond_timedwait(condition, mutex, &limit)
        }
    }
}
