// SPDX-License-Identifier: Apache-2.0

import CPlatform

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
        try systemCall(.handleSignal) { cplatform_signal_to_pipe(signal.rawValue, pipe.writing.rawValue) }
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
