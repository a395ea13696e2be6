// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

/// The first of some signals, handed to a thread that can do what a signal handler must not.
///
/// A handler writes the signal's number to a pipe and does nothing else. There is one such pipe in a process,
/// and it stays as long as the process.
package final class SignalPipe: Sendable {
    private let pipe: Pipe

    /// Opens the pipe; no signal is handled yet.
    package init() throws(Errno) {
        pipe = try Pipe()
    }

    /// Takes over a signal that has its default effect; false: the process ignores it, as under nohup(1), or
    /// handles it itself, and that stays.
    ///
    /// C: `sigaction`.
    package func take(_ signal: Signal) throws(Errno) -> Bool {
        guard signal.hasDefaultEffect else { return false }
        try nothingOrErrno { cplatform_signal_to_pipe(signal.rawValue, pipe.writing.rawValue) }
        return true
    }

    /// Waits until one of the signals arrives.
    ///
    /// From then on any further one ends the process at once.
    ///
    /// C: `read`.
    package func next() throws(Errno) -> Signal {
        guard let number = try pipe.reading.readAvailable().first else { throw .badDescriptor }
        return Signal(rawValue: Int32(number))
    }
}

extension Signal {
    /// Whether nothing in this process handles or ignores it.
    ///
    /// What handles it for the process that this one was forked from has no effect here.
    ///
    /// C: `sigaction`, `getpid`.
    package var hasDefaultEffect: Bool {
        disposition == 0 || cplatform_signal_is_inherited(rawValue) != 0
    }

    /// Ends this process by this signal, so that its parent sees what happened.
    ///
    /// For the calling thread it is unblocked, so that it arrives in any case. Returns only where the signal has
    /// no effect.
    ///
    /// C: `signal`, `pthread_sigmask`, `raise`.
    package func endProcess() {
        _ = Glibc.signal(rawValue, SIG_DFL)
        var signals = sigset_t([self])
        unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(rawValue)
    }
}
