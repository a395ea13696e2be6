// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

extension Signal {
    /// Hands the first of `signals` that arrives to `body`, on a thread of its own, which can do what a signal handler
    /// must not; from then on any further one ends the process at once.
    ///
    /// Those are left alone that have no default effect: the process ignores them, as under nohup(1), or handles them
    /// itself. A handler writes the signal's number to a pipe and does nothing else. To be called once in a process.
    ///
    /// C: `pipe2`, `pthread_create`, `sigaction`; `read` on the thread.
    package static func takeFirst(
        of signals: [Signal],
        on name: StaticString,
        _ body: @escaping @Sendable (Signal) -> Void
    ) throws(Errno) {
        let pipe = try Pipe()
        // The thread first: a signal that arrives before it waits is in the pipe.
        try DetachedThread.start(name) {
            do throws(Errno) {
                guard let number = try pipe.reading.readAvailable().first else { throw .badDescriptor }
                body(Signal(rawValue: Int32(number)))
            } catch {
                // A pipe that this process holds both ends of can be read.
                preconditionFailure("reading the signals: \(error)")
            }
        }
        for signal in signals where signal.hasDefaultEffect {
            try systemCall(.handleSignal) { cplatform_signal_to_pipe(signal.rawValue, pipe.writing.rawValue) }
        }
    }
}

/// Whether this process was told to end, for a program whose work goes on until then.
///
/// Whoever works can ask at any time, and whoever waits is woken. There is one in a process, and it stays as long as the
/// process.
package final class StopSignal: Sendable {
    /// The first that has arrived.
    private let arrived = Monitored<Signal?>(nil)

    /// Takes over `signals`, but those that are ignored; from the first on any further one ends the process at once.
    package init(_ signals: [Signal]) throws(Errno) {
        try Signal.takeFirst(of: signals, on: "diskcache-stop") { [arrived] signal in
            arrived.withLock { $0 = signal }
            arrived.wakeAll()
        }
        // Also where whoever has started this process left them blocked.
        signals.change(SIG_UNBLOCK)
    }

    /// Whether one has arrived; no system call.
    package var hasArrived: Bool { arrived.withLock { $0 != nil } }

    /// Waits until `deadline`; returns the signal as soon as one has arrived, else nil.
    package func wait(until deadline: ContinuousClock.Instant) -> Signal? {
        arrived.wait(until: deadline) { $0 }
    }
}
