// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// The system calls that this module makes; a test uses these names to make calls fail.
///
/// Every call goes through ``systemCall(_:_:)`` or checks ``isRefused``, except those whose result applies to the whole
/// process (``KernelSupport``) and those that can't fail (`getpid`). Variants of a call count as one: `stat`, `fstat` and
/// `fstatat` are all ``status``. Closing and unlocking must happen in any case, so these calls are made even if a test
/// makes them fail.
package enum SystemCall: Int32, Sendable, CaseIterable {
    case open, close, read, status
    case write, seek, synchronize, allocate, clone, copyFileRange, listDirectory
    case makeDirectory, link, rename, unlink, readLink
    case getAttribute, setAttribute, setTimes, changeMode, changeOwner
    case fileSystemStatus, descriptorFlags, lock, map
    case getLimit, poll, pipe, receiveSignals, handleSignal, spawn, wait, makeThread, workingDirectory

    /// An injected fault of a call.
    package enum Fault: Sendable, Equatable {
        /// The call fails.
        case error(Errno)
        /// The call reads, writes or copies at most the given number of bytes; no effect on calls that move none.
        case short(Int)
    }

    /// A function that is called before each system call; it returns nil to make the call unchanged.
    package typealias Injector = @Sendable (SystemCall) -> Fault?

    /// Runs `body` with faults that `injector` injects into the calls of this thread or of all threads; for tests.
    ///
    /// An injected EINTR repeats the call, which asks the injector again. In a process that never injects faults, a call
    /// costs one additional load and a branch that is never taken.
    @discardableResult
    package static func withFaults<Result>(
        onAllThreads: Bool = false,
        _ injector: @escaping Injector,
        _ body: () throws -> Result
    ) rethrows -> Result {
        let injection = Injection(thread: onAllThreads ? nil : threadNumber, injector: injector)
        injections.withLock { $0.append(injection) }
        defer { injections.withLock { $0.removeAll { $0 === injection } } }
        cplatform_inject { call, count in SystemCall.granted(call, count) }
        return try body()
    }

    private final class Injection: Sendable {
        /// The affected thread; nil for all threads.
        let thread: Int?
        let injector: Injector

        init(thread: Int?, injector: @escaping Injector) {
            self.thread = thread
            self.injector = injector
        }
    }

    private static let injections = Locked<[Injection]>([])

    /// Returns the number of bytes that a call may move, or -1 with errno set.
    private static func granted(_ number: Int32, _ count: Int) -> Int {
        guard let call = SystemCall(rawValue: number) else { return count }
        let thread = threadNumber
        let present = injections.withLock { $0.filter { $0.thread == nil || $0.thread == thread } }
        for injection in present {
            switch injection.injector(call) {
            case nil: continue
            case .short(let most): return min(most, count)
            case .error(let error):
                errno = error.rawValue
                return -1
            }
        }
        return count
    }

    /// Whether a test makes the next call fail; if so, errno is set.
    @inline(__always)
    var isRefused: Bool { cplatform_is_injecting() && cplatform_granted(rawValue, 0) < 0 }

    /// Makes the call with at most the number of bytes that a test allows.
    @inline(never)
    fileprivate func limited(_ count: Int, _ call: (Int) -> Int) -> Int {
        let granted = cplatform_granted(rawValue, count)
        return granted < 0 ? -1 : call(granted)
    }
}

/// Makes a system call, repeats it while a signal interrupts it, and throws an ``Errno`` if it returns -1.
@discardableResult
@inline(__always)
func systemCall<Value: FixedWidthInteger & SignedInteger>(
    _ name: SystemCall,
    _ call: () -> Value
) throws(Errno) -> Value {
    while true {
        let value = name.isRefused ? -1 : call()
        if value != -1 { return value }
        try Errno.throwCurrentUnlessInterrupted()
    }
}

/// Makes a system call that moves up to `count` bytes, and returns the number of bytes moved.
@inline(__always)
func systemCall(_ name: SystemCall, upTo count: Int, _ call: (Int) -> Int) throws(Errno) -> Int {
    while true {
        let value = cplatform_is_injecting() ? name.limited(count, call) : call(count)
        if value != -1 { return value }
        try Errno.throwCurrentUnlessInterrupted()
    }
}

/// Makes a system call that returns its error and does not set errno.
func systemCallReturningError(_ name: SystemCall, _ call: () -> CInt) throws(Errno) {
    try systemCall(name) { () -> CInt in
        let error = call()
        if error == 0 { return 0 }
        errno = error
        return -1
    }
}

/// Runs `body`, and returns false if it fails with EEXIST; any other error is thrown.
@discardableResult
package func unlessExists(_ body: () throws(Errno) -> Void) throws(Errno) -> Bool {
    do throws(Errno) {
        try body()
        return true
    } catch {
        if error == .exists { return false }
        throw error
    }
}

/// Runs `body`, and returns nil if it fails with ENOENT; any other error is thrown.
package func ifExists<Value: ~Copyable>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        if error == .noEntry { return nil }
        throw error
    }
}
