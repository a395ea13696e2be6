// SPDX-License-Identifier: Apache-2.0

import Platform

/// SIGTERM or SIGINT, for a program that mostly waits for input: a descriptor to wait for beside that.
///
/// As with ``StopSignal``, made by the main thread before it starts others, and there as long as the process.
final class EndRequest: Sendable {
    /// How long what is under way may take then, such as writing to somebody who reads no more.
    ///
    /// Well below the 10 s that container runtimes grant after SIGTERM.
    private static let patience: Duration = .seconds(5)

    private let pipe: Pipe

    /// From now on the first of these signals only makes ``descriptor`` readable.
    ///
    /// The next one ends the process at once, and so does the end of the patience.
    init() throws(Errno) {
        pipe = try Pipe()
        let signals = try StopSignal([.terminate, .interrupt])
        try DetachedThread.start("diskcache-end") { self.watch(signals) }
    }

    /// Readable once one of the signals has arrived.
    var descriptor: Int32 { pipe.reading.rawValue }

    private func watch(_ signals: StopSignal) {
        var arrived: Signal?
        while arrived == nil { arrived = signals.wait(until: ContinuousClock.now + .seconds(3600)) }
        guard let signal = arrived else { return }
        do throws(Errno) {
            try pipe.writing.writeAll([0].span)
        } catch {
            // A pipe of this process's own, with nothing in it, takes a byte, unless a sandbox forbids it.
            CurrentProcess.end(like: signal)
        }
        sleepThread(for: Self.patience)
        CurrentProcess.end(like: signal)
    }
}
