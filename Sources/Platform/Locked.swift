// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Synchronization

/// A value behind a mutex.
///
/// Synchronization.Mutex, made known to ThreadSanitizer, which does not see its futex on Linux and
/// would report every use of the value as a race.
@safe
package struct Locked<Value: ~Copyable>: ~Copyable, Sendable {
    private let mutex: Mutex<Value>
    /// An address that stays, for the sanitizer to know this mutex by.
    private nonisolated(unsafe) let token = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)

    package init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }

    deinit {
        unsafe token.deallocate()
    }

    /// Runs `body` with the value, alone.
    ///
    /// Decide inside, act outside: no system call belongs in here.
    package func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let token = unsafe token
        return try mutex.withLock { value throws(Failure) in
            unsafe cplatform_thread_sanitizer_acquire(token)
            defer { unsafe cplatform_thread_sanitizer_release(token) }
            return try body(&value)
        }
    }
}

extension Locked where Value: ~Copyable {
    /// A lock on the heap, for collections, which hold no noncopyable values.
    package final class Box: Sendable {
        package let value: Locked

        package init(_ value: consuming sending Value) {
            self.value = Locked(value)
        }
    }
}
