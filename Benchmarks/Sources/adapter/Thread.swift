// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A thread of the system that makes one value.
final class Thread<Value: Sendable>: @unchecked Sendable {
    private let body: @Sendable () -> Value
    /// Written by the thread before it ends, read by `join` after that: pthread_join(3) orders the two.
    private var value: Value?
    private var identifier = pthread_t()

    /// Starts it.
    init(_ body: @escaping @Sendable () -> Value) {
        self.body = body
        let context = unsafe Unmanaged.passRetained(self as AnyObject).toOpaque()
        let code = unsafe pthread_create(
            &identifier,
            nil,
            { context in
                guard let context = unsafe context else { return nil }
                let object = unsafe Unmanaged<AnyObject>.fromOpaque(context).takeRetainedValue()
                (object as? any Runnable)?.run()
                return nil
            },
            context
        )
        precondition(code == 0, "no thread can be started: error \(code)")
    }

    /// Waits for its end.
    func join() -> Value {
        pthread_join(identifier, nil)
        guard let value else { preconditionFailure("a thread ended without a value") }
        return value
    }
}

/// What the start of a thread can call without knowing its value's type.
private protocol Runnable {
    func run()
}

extension Thread: Runnable {
    fileprivate func run() { value = body() }
}

/// Lets threads go on once all of them have come.
@safe final class Gate: @unchecked Sendable {
    // The pthread functions synchronize; it lives as long as the process.
    private let barrier: UnsafeMutablePointer<pthread_barrier_t>

    init(threads: Int) {
        unsafe barrier = .allocate(capacity: 1)
        unsafe pthread_barrier_init(barrier, nil, UInt32(threads))
    }

    func wait() {
        unsafe pthread_barrier_wait(barrier)
    }
}
