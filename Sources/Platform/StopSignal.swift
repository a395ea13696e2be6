// SPDX-License-Identifier: Apache-2.0

/// Whether this process was told to end, for a program whose work goes on until then.
///
/// A thread of its own fetches the signal, so that whoever works can ask at any time, and whoever waits is woken. As
/// with ``HeldSignals``, made by the main thread before it starts others. It stays as long as the process.
package final class StopSignal: Sendable {
    private let signals: HeldSignals
    private let isRaised = Monitored(false)

    /// Holds `signals` back, but those that are ignored; from the first on any further one ends the process at once.
    package init(_ signals: [Signal]) throws(Errno) {
        self.signals = try HeldSignals(signals)
        try DetachedThread.start("diskcache-stop") {
            _ = self.fetch()
            self.isRaised.withLock { $0 = true }
            self.isRaised.wakeAll()
            CurrentProcess.end(like: self.fetch())
        }
    }

    private func fetch() -> Signal {
        while true {
            if let received = signals.next() { return received.signal }
            do throws(Errno) {
                _ = try Readiness.wait(for: [signals.descriptor], limit: .seconds(3600))
            } catch {
                // A descriptor of this process's own can be waited for.
                preconditionFailure("waiting for signals: \(error)")
            }
        }
    }

    /// Whether one has arrived; no system call.
    package var hasArrived: Bool { isRaised.withLock { $0 } }

    /// Waits until `deadline`; true as soon as a signal has arrived.
    package func wait(until deadline: ContinuousClock.Instant) -> Bool {
        isRaised.wait(until: deadline) { $0 ? true : nil } ?? false
    }
}
