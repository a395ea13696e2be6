// SPDX-License-Identifier: Apache-2.0

import CPlatform
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
    package static let fileSizeLimit = Signal(rawValue: SIGXFSZ)
    package static let user1 = Signal(rawValue: SIGUSR1)
    package static let user2 = Signal(rawValue: SIGUSR2)
    package static let child = Signal(rawValue: SIGCHLD)

    /// Ignores the signal.
    ///
    /// If ``brokenPipe`` or ``fileSizeLimit`` is ignored, the call that would end the process fails with EPIPE or EFBIG.
    ///
    /// C: `signal`.
    package func ignore() {
        _ = Glibc.signal(rawValue, SIG_IGN)
    }

    /// Replaces the signal's handler by the kernel's default effect.
    ///
    /// An ignored signal stays ignored, because the process may have inherited that at start.
    ///
    /// C: `signal`.
    package func restoreDefault() {
        if !isIgnored { _ = Glibc.signal(rawValue, SIG_DFL) }
    }

    package var isIgnored: Bool { disposition == 1 }

    /// The bits of the signal's handler.
    ///
    /// SIG_DFL is 0 and SIG_IGN is 1; they are not functions, so only their bits can be compared.
    ///
    /// C: `sigaction`.
    var disposition: Int {
        var action = sigaction()
        let failed = unsafe sigaction(rawValue, nil, &action) == -1
        precondition(!failed, "there is such a signal")
        return unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    }

    /// Whether the signal has its default effect: this process neither handles nor ignores it.
    ///
    /// A ``SignalPipe`` handler inherited from the process that forked this one does not count: it has no effect here.
    ///
    /// C: `sigaction`, `getpid`.
    package var hasDefaultEffect: Bool {
        disposition == 0 || cplatform_signal_is_inherited(rawValue) != 0
    }

    /// Ends this process by this signal, so that its parent sees the signal as the cause.
    ///
    /// The signal is unblocked for the calling thread, so that it always arrives. The function returns only if the signal
    /// has no effect.
    ///
    /// C: `signal`, `pthread_sigmask`, `raise`.
    package func endProcess() {
        _ = Glibc.signal(rawValue, SIG_DFL)
        [self].change(SIG_UNBLOCK)
        raise(rawValue)
    }
}

extension sigset_t {
    /// Creates a set of the given signals.
    init(_ signals: [Signal]) {
        self.init()
        unsafe sigemptyset(&self)
        for signal in signals { unsafe sigaddset(&self, signal.rawValue) }
    }
}

extension [Signal] {
    /// Blocks or unblocks these signals for the calling thread.
    ///
    /// C: `pthread_sigmask`.
    func change(_ how: CInt) {
        var set = sigset_t(self)
        unsafe pthread_sigmask(how, &set, nil)
    }
}
