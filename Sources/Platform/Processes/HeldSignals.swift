// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// Signals whose effect is suspended, so that a process can wait for them and for pipes at once.
///
/// Signals are blocked, not handled: no code of this program runs inside a signal handler. A signal that the process
/// ignores, for instance under nohup(1), is not blocked and stays ignored; if it were blocked, it would arrive. Signals
/// are blocked only in the calling thread and in threads started later, so this is for a process's main thread.
/// Destroying the value unblocks the signals, including any that have arrived and were not fetched.
package struct HeldSignals: ~Copyable, Sendable {
    private let held: [Signal]
    private let file: FileDescriptor

    /// Suspends the effect of `signals`.
    ///
    /// C: `signalfd`, `pthread_sigmask`.
    package init(_ signals: [Signal]) throws(Errno) {
        // Some daemons start their children with SIGCHLD ignored. An ignored SIGCHLD would not arrive, and waiting for a
        // child would not work.
        if signals.contains(.child) { _ = Glibc.signal(SIGCHLD, SIG_DFL) }
        let held = signals.filter { !$0.isIgnored }
        var set = sigset_t(held)
        file = FileDescriptor(
            owning: try systemCall(.receiveSignals) { unsafe cplatform_signalfd(&set) }
        )
        self.held = held
        held.change(SIG_BLOCK)
    }

    deinit {
        held.change(SIG_UNBLOCK)
    }

    /// A descriptor that is readable when a signal has arrived.
    package var descriptor: Int32 { file.rawValue }

    /// Returns a signal that has arrived, if any, and whether the kernel sent it.
    ///
    /// The kernel sends the signals that terminal keys cause, and sends them to all processes in the terminal's
    /// foreground.
    ///
    /// C: `sigtimedwait`.
    package func next() -> (signal: Signal, isFromKernel: Bool)? {
        var set = sigset_t(held)
        var none = timespec()
        var information = unsafe siginfo_t()
        let number = unsafe sigtimedwait(&set, &information, &none)
        guard number > 0 else { return nil }
        // SI_USER and similar codes, used for signals sent by processes, are not positive: sigaction(2).
        return (Signal(rawValue: number), unsafe information.si_code > 0)
    }
}

/// A record of whether a signal has asked this process to end, for a program that runs until it is stopped.
///
/// A separate thread fetches the signal, so that working threads can check it at any time and waiting threads are woken.
/// Like ``HeldSignals``, it must be created by the main thread before other threads start. It exists as long as the process.
package final class StopSignal: Sendable {
    private let signals: HeldSignals
    /// The first signal that has arrived.
    private let arrived = Monitored<Signal?>(nil)

    /// Suspends the effect of `signals`, except ignored ones; the second signal that arrives ends the process at once.
    package init(_ signals: [Signal]) throws(Errno) {
        self.signals = try HeldSignals(signals)
        try DetachedThread.start("diskcache-stop") {
            let first = self.fetch()
            self.arrived.withLock { $0 = first }
            self.arrived.wakeAll()
            CurrentProcess.end(like: self.fetch())
        }
    }

    private func fetch() -> Signal {
        while true {
            if let received = signals.next() { return received.signal }
            do throws(Errno) {
                _ = try Readiness.wait(for: [signals.descriptor], limit: .seconds(3600))
            } catch {
                // The wait fails only if a sandbox forbids it.
                sleepThread(for: .milliseconds(50))
            }
        }
    }

    /// Whether a signal has arrived; makes no system call.
    package var hasArrived: Bool { arrived.withLock { $0 != nil } }

    /// Waits for a signal and returns it; nil if none has arrived by `deadline`.
    package func wait(until deadline: ContinuousClock.Instant) -> Signal? {
        arrived.wait(until: deadline) { $0 }
    }
}
