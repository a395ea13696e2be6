// SPDX-License-Identifier: Apache-2.0

import Platform

/// SIGTERM or SIGINT as a readable descriptor, for a program that mostly waits for input.
///
/// Like ``StopSignal``, it must be created by the main thread before other threads start, and exists as long as the process.
final class ShutdownSignal: Sendable {
    /// The time limit for work in progress after the signal, such as writing to a client that no longer reads.
    ///
    /// It is well below the 10 s that container runtimes grant after SIGTERM.
    private static let patience: Duration = .seconds(5)

    private let pipe: Pipe

    /// Makes the first of these signals only cause ``descriptor`` to become readable.
    ///
    /// The next signal ends the process at once, and so does the end of the time limit.
    init() throws(Errno) {
        pipe = try Pipe()
        let signals = try StopSignal([.terminate, .interrupt])
        try DetachedThread.start("diskcache-end") { self.watch(signals) }
    }

    /// The descriptor, which is readable once one of the signals has arrived.
    var descriptor: Int32 { pipe.reading.rawValue }

    private func watch(_ signals: StopSignal) {
        var arrived: Signal?
        while arrived == nil { arrived = signals.wait(until: ContinuousClock.now + .seconds(3600)) }
        guard let signal = arrived else { return }
        do throws(Errno) {
            try pipe.writing.writeAll([0].span)
        } catch {
            // An empty pipe accepts a byte, unless a sandbox forbids it.
            CurrentProcess.end(like: signal)
        }
        sleepThread(for: Self.patience)
        CurrentProcess.end(like: signal)
    }
}
