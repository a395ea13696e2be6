// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// Signals held back from doing what they do, so that a process can wait for them and for pipes at once.
///
/// One that is ignored stays so, as under nohup(1): blocked, it would arrive. They are blocked, not handled:
/// no code of ours runs inside a signal handler. Only the calling thread and those started later hold them
/// back, so this is for a process's main thread. When this goes they do again what they did, also those
/// that have arrived and were not fetched.
package struct HeldSignals: ~Copyable, Sendable {
    /// A signal that has arrived.
    package struct Received: Sendable, Equatable {
        package let signal: Signal
        /// Whether the kernel sent it: for a key on the terminal, to all processes in its foreground.
        package let isFromKernel: Bool
    }

    private let held: [Signal]
    private let file: FileDescriptor

    /// Holds `signals` back.
    ///
    /// C: `signalfd`, `pthread_sigmask`.
    package init(_ signals: [Signal]) throws(Errno) {
        // Ignored, as some daemons leave it to their children, it would not arrive, nor could anybody wait
        // for a child.
        if signals.contains(.child) { _ = Glibc.signal(SIGCHLD, SIG_DFL) }
        let held = signals.filter { !$0.isIgnored }
        let numbers = held.map(\.rawValue)
        file = FileDescriptor(
            owning: try valueOrErrno { unsafe cplatform_signalfd(numbers, numbers.count) }
        )
        self.held = held
        var set = sigset_t(held)
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    deinit {
        var set = sigset_t(held)
        unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    /// A descriptor that is readable when a signal has arrived.
    package var descriptor: Int32 { file.rawValue }

    /// One that has arrived, if any.
    ///
    /// C: `sigtimedwait`.
    package func next() -> Received? {
        var set = sigset_t(held)
        var none = timespec()
        var information = unsafe siginfo_t()
        let number = unsafe sigtimedwait(&set, &information, &none)
        guard number > 0 else { return nil }
        // SI_USER and its like, by which processes send signals, are not positive, sigaction(2).
        return Received(signal: Signal(rawValue: number), isFromKernel: unsafe information.si_code > 0)
    }
}

extension sigset_t {
    /// A set of these signals.
    init(_ signals: [Signal]) {
        self.init()
        unsafe sigemptyset(&self)
        for signal in signals { unsafe sigaddset(&self, signal.rawValue) }
    }
}

extension CurrentProcess {
    /// Ends this process by `signal`, as a child of it has ended, without a core file of its own.
    ///
    /// C: `setrlimit`, and what ``Signal/endProcess()`` calls.
    package static func end(like signal: Signal) -> Never {
        // A core file of this process would only replace the child's.
        _ = cplatform_forbid_core()
        signal.endProcess()
        // As a shell says it, for a signal that does not end a process.
        exit(128 + signal.rawValue)
    }

    /// Closes all descriptors but the standard ones, which a caller may wait to see closed.
    ///
    /// Before Linux 5.9 it does nothing. Only for a program's first lines, as it has none of its own then.
    ///
    /// C: `close_range`.
    package static func closeInheritedDescriptors() {
        _ = cplatform_close_from(3)
    }
}
