// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The wait for another process that runs the same command.
///
/// It reports that process: on a terminal after a second, elsewhere once, after five. Signals are blocked for the lifetime
/// of this value.
struct RunWaiting: ~Copyable {
    /// The longest pause between two attempts at the lock, in milliseconds.
    private static let longestPause: Int64 = 4
    /// How long a wait is silent, even on a terminal.
    private static let patience: Duration = .seconds(1)

    /// When a wait is reported without a terminal, so that a log explains the delay.
    private static let longPatience: Duration = .seconds(5)

    private let signals: HeldSignals
    private let began = ContinuousClock.now
    /// How long to wait; nil to wait without limit.
    private let limit: Duration?
    private var isReported = Terminal.isInteractive(Terminal.standardError)
    /// The number of pauses so far.
    private(set) var pauses = 0
    private var line: ProgressLine?
    private var wasSuspicious = false

    init(within limit: Duration?) throws(Errno) {
        self.limit = limit
        signals = try HeldSignals(RunningCommand.passedOn)
    }

    deinit {
        line?.clear()
    }

    /// Whether the limit has passed.
    var isOver: Bool { limit.map { ContinuousClock.now - began >= $0 } ?? false }

    /// Whether to check for a wait of this process for itself: once, after the time by which the lock file must name its
    /// holder.
    mutating func isSuspicious() -> Bool {
        guard !wasSuspicious, ContinuousClock.now - began >= Self.patience else { return false }
        wasSuspicious = true
        return true
    }

    /// Pauses before the next attempt at `lock`; returns the signal that asks this process to end, if any.
    mutating func pause(before lock: FlightLock) throws(Errno) -> Signal? {
        let waited = ContinuousClock.now - began
        if waited >= Self.patience {
            if line == nil { line = ProgressLine() }
            line?.show(Self.words(lock.holder))
        }
        if waited >= Self.longPatience, !isReported {
            isReported = true
            Notice.warn(Self.words(lock.holder))
        }
        let longest = min(1 << min(pauses, 8), Self.longestPause)
        let limit = Duration.milliseconds(Int64.random(in: 1...longest))
        pauses += 1
        _ = try Readiness.wait(for: [signals.descriptor], limit: limit)
        return signals.next()?.signal
    }

    static func words(_ holder: ComputingProcess?) -> String {
        guard let holder else { return "waiting for another process that runs the command" }
        let span = Quantity.text(max(.zero, Timestamp.now - holder.moment))
        return "waiting for process \(holder.processIdentifier), which started the command \(span) ago"
    }
}
