// SPDX-License-Identifier: Apache-2.0

public import CPlatform
import Glibc

/// Threads that the library creates in addition to the program's own.
package enum DetachedThread {
    /// The stack size of a thread that runs no code of the program.
    ///
    /// Such a thread does not recurse deeply, and the usual 8 MiB would count against limits on address space.
    package static let smallStack = 512 * 1024

    /// Signals that a thread's own actions raise in that thread.
    ///
    /// If they were blocked, they would end the process without calling a handler of the program, for instance a crash
    /// reporter's. Dispatch leaves them unblocked, too.
    private static var ofTheThread: [CInt] {
        [SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGSEGV, SIGSYS, SIGABRT, SIGPROF]
    }

    /// Runs `body` on a new thread that can't be joined.
    ///
    /// All signals except those caused by the thread itself are blocked in it, so that the program's signals arrive at its
    /// own threads.
    ///
    /// C: `pthread_create`, `pthread_setname_np`.
    ///
    /// - Parameters:
    ///   - name: The name shown by `ps -T` and debuggers, at most 15 bytes.
    ///   - stackSize: The size in bytes; nil for the default of this program's threads.
    /// - Throws: `EAGAIN` if no more threads can be created.
    package static func start(
        _ name: StaticString,
        stackSize: Int? = smallStack,
        _ body: @escaping @Sendable () -> Void
    ) throws(Errno) {
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        if let stackSize { unsafe pthread_attr_setstacksize(&attributes, stackSize) }

        var all = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&all)
        for signal in Self.ofTheThread { unsafe sigdelset(&all, signal) }
        unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }

        let start = unsafe Unmanaged.passRetained(Start(name, body))
        var thread = pthread_t()
        let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { argument in
            guard let argument = unsafe argument else { return nil }
            let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
            // Named by the thread itself: a detached thread may have ended before its creator names it.
            unsafe cplatform_name_thread(start.name.cString)
            start.body()
            return nil
        }
        do throws(Errno) {
            try systemCallReturningError(.makeThread) {
                unsafe pthread_create(&thread, &attributes, run, start.toOpaque())
            }
        } catch {
            unsafe start.release()
            throw error
        }
    }

    /// Whether `count` additional threads can run at the same time.
    ///
    /// The function creates that many threads and waits until they have ended.
    ///
    /// Swift's tasks and Dispatch's queues wait forever if no thread can be created (`pids.max`, `ulimit -u`, a sandbox). A
    /// blocking call that needs tasks checks this first.
    ///
    /// C: `pthread_create`.
    package static func areAvailable(_ count: Int) -> Bool {
        let state = Monitored((isOver: false, running: 0))
        var made = 0
        do throws(Errno) {
            while made < count {
                try start("diskcache-try") {
                    _ = state.wait { $0.isOver ? true : nil }
                    state.withLock { $0.running -= 1 }
                    state.wakeAll()
                }
                state.withLock { $0.running += 1 }
                made += 1
            }
        } catch {
            // EAGAIN, whichever limit was reached.
        }
        state.withLock { $0.isOver = true }
        state.wakeAll()
        _ = state.wait { $0.running == 0 ? true : nil }
        return made == count
    }

    private final class Start: Sendable {
        let name: StaticString
        let body: @Sendable () -> Void

        init(_ name: StaticString, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}

/// The calling thread's number, for choosing one of several counters whose sum is the result.
///
/// A thread gets its number on first use; numbers are not reused. They start at a different value in each process,
/// because processes share the counters. Reading the number accesses a thread-local variable and makes no call.
@inlinable package var threadNumber: Int { Int(cplatform_thread_number()) }
