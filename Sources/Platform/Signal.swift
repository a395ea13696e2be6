// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A signal, signal(7).
package struct Signal: Sendable, Equatable {
    package let rawValue: Int32

    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    package static let hangup = Signal(rawValue: SIGHUP)
    package static let quit = Signal(rawValue: SIGQUIT)
    package static let interrupt = Signal(rawValue: SIGINT)
    package static let terminate = Signal(rawValue: SIGTERM)
    package static let kill = Signal(rawValue: SIGKILL)
    package static let stop = Signal(rawValue: SIGSTOP)
    package static let `continue` = Signal(rawValue: SIGCONT)
    package static let brokenPipe = Signal(rawValue: SIGPIPE)
    package static let user1 = Signal(rawValue: SIGUSR1)
    package static let user2 = Signal(rawValue: SIGUSR2)
    package static let child = Signal(rawValue: SIGCHLD)

    /// Makes writes to a pipe that nobody reads fail with EPIPE instead of ending the process.
    ///
    /// C: `signal`.
    package static func ignoreBrokenPipes() {
        _ = Glibc.signal(SIGPIPE, SIG_IGN)
    }

    /// Makes writes past the limit of a file's size (`ulimit -f`) fail with EFBIG instead of ending the
    /// process.
    ///
    /// C: `signal`.
    package static func ignoreSizeLimit() {
        _ = Glibc.signal(SIGXFSZ, SIG_IGN)
    }

    /// Takes a signal from whatever handles it, so that it ends the process as the kernel does; where this
    /// process was started with the signal ignored, that stays.
    ///
    /// C: `signal`.
    package func restoreDefault() {
        if !isIgnored { _ = Glibc.signal(rawValue, SIG_DFL) }
    }

    package var isIgnored: Bool { disposition == 1 }

    /// The bits of its handler: SIG_DFL is 0 and SIG_IGN is 1, which are no functions, so that only their bits
    /// can be compared.
    ///
    /// C: `sigaction`.
    var disposition: Int {
        var action = sigaction()
        let failed = unsafe sigaction(rawValue, nil, &action) == -1
        precondition(!failed, "there is such a signal")
        return unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    }
}

/// SIGHUP, SIGINT and SIGTERM, held back so that a process can put its things in order first.
///
/// One that is ignored stays so, as under nohup(1): blocked, it would arrive.
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
        for signal in [Signal.hangup, .interrupt, .terminate] where !signal.isIgnored {
            unsafe sigaddset(&signals, signal.rawValue)
        }
        return signals
    }
}
