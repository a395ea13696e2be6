// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Platform

/// How the wait for a result ends.
enum FlightTurn: ~Copyable {
    /// The command is ours to run.
    case first(FlightLock)
    /// There is no use in waiting: the cache can't be locked, or can't keep what is computed.
    case alone
    /// This process is to end so.
    case served(SpawnedProcess.End)
}

/// The wait for another process that runs the same command, or for being the one.
struct RunWaiting {
    /// The longest pause between two looks at whether the lock is free, in milliseconds.
    private static let longestPause: Int64 = 4
    /// How long a wait is silent, also on a terminal.
    private static let patience: Duration = .seconds(1)

    private let key: String
    private let cache: SharedCache
    private let isServed: () throws -> Bool

    /// - Parameter isServed: whether the result is there by now.
    init(_ key: String, _ cache: SharedCache, isServed: @escaping () throws -> Bool) {
        self.key = key
        self.cache = cache
        self.isServed = isServed
    }

    /// Waits for the lock; nil as soon as the result is there.
    ///
    /// On a terminal it says after a while for whom it waits.
    func turn() throws -> FlightTurn? {
        let signals = try HeldSignals(RunningCommand.passedOn)
        var wait = try cache.flightWait(forKey: key)
        let deadline = ContinuousClock.now + Self.patience
        var isWaiting = false
        let first = try step(&wait, signals) { _ in
            if !isWaiting { cache.count(.wait) }
            isWaiting = true
            return ContinuousClock.now < deadline
        }
        switch consume first {
        case .decided(let turn): return consume turn
        case .served: return nil
        case .impatient: break
        }
        var turn: FlightTurn?
        try ProgressLine.during { line in
            let step = try step(&wait, signals) { holder in
                line.show(Self.words(holder))
                return true
            }
            if case .decided(let decision) = step { turn = consume decision }
        }
        return turn
    }

    private enum Step: ~Copyable {
        case decided(FlightTurn)
        case served
        case impatient
    }

    private func step(
        _ wait: inout FlightWait,
        _ signals: borrowing HeldSignals,
        isPatient: (FlightHolder?) -> Bool
    ) throws -> Step {
        var pause: Int64 = 1
        while true {
            switch try cache.attempt(&wait) {
            case .acquired(let lock):
                guard try isServed() else { return .decided(.first(lock)) }
                lock.release()
                return .served
            case .ended(let isUnstored):
                // One after another would run it then, in vain.
                if isUnstored { return .decided(.alone) }
                if try isServed() { return .served }
            case .held:
                if !isPatient(wait.holder) { return .impatient }
                let limit = Duration.milliseconds(Int64.random(in: 1...pause))
                _ = try Readiness.wait(for: [signals.descriptor], limit: limit)
                if let received = signals.next() {
                    return .decided(.served(.killed(received.signal)))
                }
                pause = min(pause * 2, Self.longestPause)
            }
        }
    }

    private static func words(_ holder: FlightHolder?) -> String {
        guard let holder else { return "waiting for another process that runs the command" }
        let span = Quantity.text(max(.zero, Timestamp.now - holder.since))
        return "waiting for process \(holder.process), which has run the command for \(span)"
    }
}
