// SPDX-License-Identifier: Apache-2.0

import Platform

/// SIGTERM or SIGINT as a readable descriptor, for a program that mostly waits for input.
///
/// The main thread must create it before other threads start, as with ``StopSignal``. It lasts as long as the process.
final class ShutdownSignal: Sendable {
    /// How long work in progress may continue after the signal, such as a write to a client that no longer reads.
    ///
    /// Well below the 10 s that container runtimes grant after SIGTERM.
    private static let patience: Duration = .seconds(5)

    private let pipe: Pipe

    /// Makes the first signal set ``descriptor`` readable instead of ending the process.
    ///
    /// A second signal, or the end of the time limit, ends the process at once.
    init() throws(Errno) {
        pipe = try Pipe()
        let signals = try StopSignal([.terminate, .interrupt])
        try DetachedThread.start("diskcache-end") { self.watch(signals) }
    }

    /// The descriptor that becomes readable when a signal arrives.
    var descriptor: Int32 { pipe.reading.rawValue }

    private func watch(_ signals: StopSignal) {
        var arrived: Signal?
        while arrived == nil { arrived = signals.wait(until: ContinuousClock.now + .seconds(3600)) }
        guard let signal = arrived else { return }
        do throws(Errno) {
            try pipe.writing.writeAll([0].span)
        } catch {
            // An empty pipe accepts a byte, so only a sandbox can prevent this write.
            CurrentProcess.end(like: signal)
        }
        sleepThread(for: Self.patience)
        CurrentProcess.end(like: signal)
    }
}
