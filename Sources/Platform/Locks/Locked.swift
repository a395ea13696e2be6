// SPDX-License-Identifier: Apache-2.0

public import Glibc

/// A value protected by a mutex: `pthread_mutex_lock`(3), which ThreadSanitizer knows.
///
/// `Synchronization.Mutex` is unsuitable: on Linux it uses a thread identifier that each thread caches once (Swift 6.3,
/// `_swift_stdlib_gettid`). In the first thread of a child made by fork(2), the cached identifier is that of a thread of
/// the parent. As soon as another thread waits for a mutex that this first thread holds, the process crashes or both
/// threads wait forever.
@safe
@usableFromInline
package struct Locked<Value: ~Copyable>: ~Copyable, Sendable {
    @usableFromInline nonisolated(unsafe) let cell: UnsafeMutablePointer<LockedCell<Value>>

    package init(_ value: consuming sending Value) {
        unsafe cell = .allocate(capacity: 1)
        unsafe cell.initialize(to: LockedCell(value))
    }

    deinit {
        unsafe cell.deinitialize(count: 1)
        unsafe cell.deallocate()
    }

    /// Runs `body` with exclusive access to the value.
    ///
    /// `body` should only read and change the value: system calls belong after it, when the mutex is free.
    @inlinable
    package func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe LockedCell.withLock(cell, body)
    }
}

/// A mutex and the value that it protects, at a fixed address.
@safe
@usableFromInline
package struct LockedCell<Value: ~Copyable>: ~Copyable {
    @usableFromInline var mutex = unsafe pthread_mutex_t()
    @usableFromInline var value: Value

    init(_ value: consuming sending Value) {
        self.value = value
    }

    @inlinable
    static func withLock<Result: ~Copyable, Failure: Error>(
        _ cell: UnsafeMutablePointer<Self>,
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        unsafe pthread_mutex_lock(&cell.pointee.mutex)
        defer { unsafe pthread_mutex_unlock(&cell.pointee.mutex) }
        return try unsafe body(&cell.pointee.value)
    }
}

extension Locked where Value: ~Copyable {
    /// A lock on the heap, for collections, which can't hold noncopyable values.
    @usableFromInline
    package final class Box: Sendable {
        @usableFromInline package let value: Locked

        package init(_ value: consuming sending Value) {
            self.value = Locked(value)
        }
    }
}
