// SPDX-License-Identifier: Apache-2.0

import CPlatform
public import Synchronization

/// A value behind a mutex.
///
/// Synchronization.Mutex, made known to ThreadSanitizer, which does not see its futex on Linux and
/// would report every use of the value as a race.
@safe
@usableFromInline
package struct Locked<Value: ~Copyable>: ~Copyable, Sendable {
    /// An address that stays, for the sanitizer to know this mutex by; nil without it.
    @usableFromInline nonisolated(unsafe) let token: UnsafeMutableRawPointer?
    // Behind it, so that what the value begins with is in the same cache line as both.
    @usableFromInline let mutex: Mutex<Value>

    package init(_ value: consuming sending Value) {
        mutex = Mutex(value)
        unsafe token =
            cplatform_is_thread_sanitized ? UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1) : nil
    }

    deinit {
        unsafe token?.deallocate()
    }

    /// Runs `body` with the value, alone.
    ///
    /// Decide inside, act outside: no system call belongs in here.
    @inlinable
    package func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let token = unsafe token
        return try mutex.withLock { value throws(Failure) in
            if let token = unsafe token { unsafe noteAcquired(token) }
            defer { if let token = unsafe token { unsafe noteReleased(token) } }
            return try body(&value)
        }
    }
}

@unsafe
@usableFromInline
func noteAcquired(_ token: UnsafeMutableRawPointer) {
    unsafe cplatform_thread_sanitizer_acquire(token)
}

@unsafe
@usableFromInline
func noteReleased(_ token: UnsafeMutableRawPointer) {
    unsafe cplatform_thread_sanitizer_release(token)
}

extension Locked where Value: ~Copyable {
    /// A lock on the heap, for collections, which hold no noncopyable values.
    @usableFromInline
    package final class Box: Sendable {
        @usableFromInline package let value: Locked

        package init(_ value: consuming sending Value) {
            self.value = Locked(value)
        }
    }
}
