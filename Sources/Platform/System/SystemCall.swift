// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// The system calls that this module makes, by which a test names those that are to fail.
///
/// Every one passes ``systemCall(_:_:)`` or asks ``isRefused`` itself, but those whose answer counts for the whole process
/// (``KernelSupport``) and those that can't fail (`getpid`). Variants of a call count as one: `stat`, `fstat` and
/// `fstatat` are all ``status``. What must be done in any case is done, also where it is to fail: closing, unlocking.
package enum SystemCall: Int32, Sendable, CaseIterable {
    case open, close, read, status
    case write, seek, synchronize, allocate, clone, copyFileRange, listDirectory
    case makeDirectory, link, rename, unlink, readLink
    case getAttribute, setAttribute, setTimes, changeMode, changeOwner
    case fileSystemStatus, descriptorFlags, lock, map
    case getLimit, poll, pipe, receiveSignals, handleSignal, spawn, wait, makeThread, workingDirectory

    /// What a call does instead of what it should.
    package enum Fault: Sendable, Equatable {
        /// It fails.
        case error(Errno)
        /// It reads, writes or copies no more than so many bytes; no effect on calls that move none.
        case short(Int)
    }

    /// What is asked about each call before it is made; nil: it is made as it is.
    package typealias Injector = @Sendable (SystemCall) -> Fault?

    /// Runs `body` with the calls of this thread, or those of all, at the mercy of `injector`: for tests.
    ///
    /// A call that is told to be interrupted (EINTR) asks again. Where nothing is injected, a call costs one load and a
    /// branch that is never taken.
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
        /// nil: all threads.
        let thread: Int?
        let injector: Injector

        init(thread: Int?, injector: @escaping Injector) {
            self.thread = thread
            self.injector = injector
        }
    }

    private static let injections = Locked<[Injection]>([])

    /// The bytes that a call may move, or -1 and errno.
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

    /// Whether a test wants the next call to fail; errno says with what.
    @inline(__always)
    var isRefused: Bool { cplatform_is_injecting() && cplatform_granted(rawValue, 0) < 0 }

    /// Makes the call with as many bytes as a test lets it move.
    @inline(never)
    fileprivate func limited(_ count: Int, _ call: (Int) -> Int) -> Int {
        let granted = cplatform_granted(rawValue, count)
        return granted < 0 ? -1 : call(granted)
    }
}

/// Makes a system call, turns the -1 of a failed one into an ``Errno``, and calls again while a signal interrupts it.
@discardableResult
@inline(__always)
func systemCall<Value: FixedWidthInteger & SignedInteger>(
    _ name: SystemCall,
    _ call: () -> Value
) throws(Errno) -> Value {
    try valueOrErrno { name.isRefused ? -1 : call() }
}

/// The same for a call that moves up to `count` bytes, and says how many it has.
@inline(__always)
func systemCall(_ name: SystemCall, upTo count: Int, _ call: (Int) -> Int) throws(Errno) -> Int {
    try valueOrErrno { cplatform_is_injecting() ? name.limited(count, call) : call(count) }
}

/// The one place where errno is read: nothing may run between the call and it.
@inline(__always)
private func valueOrErrno<Value: FixedWidthInteger & SignedInteger>(
    _ call: () -> Value
) throws(Errno) -> Value {
    while true {
        let value = call()
        if value != -1 { return value }
        let error = Errno.current
        if error != .interrupted { throw error }
    }
}

/// The same for a call that returns its error and leaves errno alone.
func systemCallReturningError(_ name: SystemCall, _ call: () -> CInt) throws(Errno) {
    try systemCall(name) { () -> CInt in
        let error = call()
        if error == 0 { return 0 }
        errno = error
        return -1
    }
}

/// False where what was to be made is there (EEXIST); every other error stays one.
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

/// Gives nil where what was asked for is not there (ENOENT); every other error stays one.
package func ifExists<Value: ~Copyable>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value? {
    do throws(Errno) {
        return try body()
    } catch {
        if error == .noEntry { return nil }
        throw error
    }
}
