// SPDX-License-Identifier: Apache-2.0

public import CPlatform
import Glibc

/// Threads of our own beside those of the program.
package enum DetachedThread {
    /// Stack of a thread that runs nothing of the program's: what it does recurses nowhere, and the usual 8 MiB would
    /// count against limits on address space.
    package static let smallStack = 512 * 1024

    /// Signals that what a thread does raises in that thread itself.
    ///
    /// Blocked, they would end the process without its handler, a crash reporter for instance. Dispatch leaves them, too.
    private static var ofTheThread: [CInt] {
        [SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGSEGV, SIGSYS, SIGABRT, SIGPROF]
    }

    /// Runs `body` on a new thread, which nobody can wait for.
    ///
    /// All signals are blocked in it but those of the thread's own doing, so that those of the program arrive at threads
    /// of the program.
    ///
    /// C: `pthread_create`, `pthread_setname_np`.
    ///
    /// - Parameters:
    ///   - name: what `ps -T` and debuggers show, at most 15 bytes.
    ///   - stackSize: bytes; nil: what threads of this program have as a rule.
    /// - Throws: `EAGAIN` where there may be no more threads.
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
            // In the thread itself: a detached one may have ended before its creator names it.
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

    /// Whether so many more threads can run at the same time: makes them, and waits until they have ended.
    ///
    /// Swift's tasks and Dispatch's queues wait for ever if no thread can be made (`pids.max`, `ulimit -u`, a sandbox). A
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
            // EAGAIN, whatever the limit that was reached.
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

/// A small number of the calling thread's own, for choosing one of several counters that are summed up.
///
/// Threads are numbered as they first ask, from another number in each process, as they share counters with
/// those; numbers are not used again. A thread-local variable, no call.
@inlinable package var threadNumber: Int { Int(cplatform_thread_number()) }
