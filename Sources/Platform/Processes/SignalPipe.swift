// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// A pipe that passes the first of several signals to a thread, which may do things that a signal handler must not.
///
/// A handler only writes the signal's number to a pipe. A process has one such pipe, which exists as long as the process.
package final class SignalPipe: Sendable {
    private let pipe: Pipe

    /// Opens the pipe without handling any signal.
    package init() throws(Errno) {
        pipe = try Pipe()
    }

    /// Handles a signal that has its default effect.
    ///
    /// Returns false and changes nothing if the process ignores the signal, for instance under nohup(1), or already
    /// handles it.
    ///
    /// C: `sigaction`.
    package func take(_ signal: Signal) throws(Errno) -> Bool {
        guard signal.hasDefaultEffect else { return false }
        try systemCall(.handleSignal) { cplatform_signal_to_pipe(signal.rawValue, pipe.writing.rawValue) }
        return true
    }

    /// Waits until one of the signals arrives.
    ///
    /// After that any further signal ends the process at once.
    ///
    /// C: `read`.
    package func next() throws(Errno) -> Signal {
        guard let number = try pipe.reading.readAvailable().first else { throw .badDescriptor }
        return Signal(rawValue: Int32(number))
    }
}
