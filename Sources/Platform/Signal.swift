// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A signal, signal(7).
package struct Signal: Sendable, Equatable {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    package static let interrupt = Signal(rawValue: SIGINT)
    package static let terminate = Signal(rawValue: SIGTERM)
    package static let kill = Signal(rawValue: SIGKILL)
    package static let stop = Signal(rawValue: SIGSTOP)
    package static let `continue` = Signal(rawValue: SIGCONT)
    package static let brokenPipe = Signal(rawValue: SIGPIPE)

    /// Makes writes to a pipe that nobody reads fail with EPIPE instead of ending the process.
    ///
    /// C: `signal`.
    package static func ignoreBrokenPipes() {
        _ = Glibc.signal(SIGPIPE, SIG_IGN)
    }
}

/// SIGINT and SIGTERM, held back so that a process can put its things in order first.
///
/// They are blocked, not handled: no code of ours runs inside a signal handler. Only the calling thread
/// and those started later hold them back, so this is for a process's main thread.
package enum Interruptions {
    /// From now on they wait until ``next()`` fetches them.
    ///
    /// C: `pthread_sigmask`.
    package static func hold() {
        var signals = set()
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// The one that has arrived, if any.
    ///
    /// C: `sigtimedwait`.
    package static func next() -> Signal? {
        var signals = set()
        var none = timespec()
        let number = unsafe sigtimedwait(&signals, nil, &none)
        return number > 0 ? Signal(rawValue: number) : nil
    }

    /// They do again what they did before ``hold()``.
    ///
    /// C: `pthread_sigmask`.
    package static func release() {
        var signals = set()
        unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Ends this process by `signal`, so that its parent sees what happened.
    ///
    /// C: `raise`.
    package static func end(by signal: Signal) {
        release()
        raise(signal.rawValue)
    }

    private static func set() -> sigset_t {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGINT)
        unsafe sigaddset(&signals, SIGTERM)
        return signals
    }
}
