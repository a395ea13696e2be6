// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// A wait for another process that runs the same command.
///
/// The wait is shown on a terminal after one second; without a terminal, it is reported once, after five seconds. Signals
/// are blocked while this value exists.
struct RunWaiting: ~Copyable {
    /// The longest pause between two attempts to take the lock, in milliseconds.
    private static let longestPause: Int64 = 4
    /// How long a wait lasts before it is shown on a terminal.
    private static let patience: Duration = .seconds(1)

    /// How long a wait lasts before it is reported without a terminal, so that a log explains the delay.
    private static let longPatience: Duration = .seconds(5)

    private let signals: HeldSignals
    private let began = ContinuousClock.now
    /// The maximum duration of the wait; nil for no limit.
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

    /// Returns whether to check now if this process waits for itself.
    ///
    /// Returns true only once, when the lock file must have named its holder for a while.
    mutating func isSuspicious() -> Bool {
        guard !wasSuspicious, ContinuousClock.now - began >= Self.patience else { return false }
        wasSuspicious = true
        return true
    }

    /// Pauses before the next attempt to take `lock`; returns the signal that asks this process to end, if one arrived.
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
