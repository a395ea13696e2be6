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

    /// One that has arrived, if any, and whether the kernel sent it: for a key on the terminal, to all processes in its
    /// foreground.
    ///
    /// C: `sigtimedwait`.
    package func next() -> (signal: Signal, isFromKernel: Bool)? {
        var set = sigset_t(held)
        var none = timespec()
        var information = unsafe siginfo_t()
        let number = unsafe sigtimedwait(&set, &information, &none)
        guard number > 0 else { return nil }
        // SI_USER and its like, by which processes send signals, are not positive, sigaction(2).
        return (Signal(rawValue: number), unsafe information.si_code > 0)
    }
}

/// Whether this process was told to end, for a program whose work goes on until then.
///
/// A thread of its own fetches the signal, so that whoever works can ask at any time, and whoever waits is woken. As
/// with ``HeldSignals``, made by the main thread before it starts others. It stays as long as the process.
package final class StopSignal: Sendable {
    private let signals: HeldSignals
    /// The first that has arrived.
    private let arrived = Monitored<Signal?>(nil)

    /// Holds `signals` back, but those that are ignored; from the first on any further one ends the process at once.
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
                // A descriptor of this process's own can be waited for, unless a sandbox forbids it.
                sleepThread(for: .milliseconds(50))
            }
        }
    }

    /// Whether one has arrived; no system call.
    package var hasArrived: Bool { arrived.withLock { $0 != nil } }

    /// Waits until `deadline`; returns the signal as soon as one has arrived, else nil.
    package func wait(until deadline: ContinuousClock.Instant) -> Signal? {
        arrived.wait(until: deadline) { $0 }
    }
}
