// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// A wait for a lock: attempts with pauses in between, until the time limit.
package struct LockWait: Sendable {
    /// The next step of the wait.
    package enum Step: Sendable {
        /// The lock is held.
        case acquired(FlightLock)
        /// Pause, and try again.
        case pause(Duration)
        /// Give up.
        case over
    }

    private var backoff = Backoff(upTo: NamedLock.longestPause)
    private let deadline: ContinuousClock.Instant?
    /// Whether the next attempt yields the lock to callers that are already waiting for it.
    private var givesWay: Bool
    private let waits: Bool

    /// Begins a wait now.
    ///
    /// - Parameter limit: the maximum time to wait; nil for no limit.
    package init(within limit: Duration?) {
        deadline = limit.map { .now + .nanoseconds(max(0, $0.saturatingNanoseconds)) }
        // A caller that does not wait makes only one attempt, so it never yields.
        waits = limit.map { $0 > .zero } ?? true
        givesWay = waits
    }

    /// Tries to acquire `lock`; never waits.
    package mutating func attempt(_ lock: NamedLock) throws(CacheError) -> Step {
        let (permit, isWanted) = try lock.attempt(givesWay: exchange(&givesWay, with: false), waits: waits)
        if let permit { return .acquired(permit) }
        if let pause = next(isWanted) { return .pause(pause) }
        return try lock.lastAttempt().map { .acquired($0) } ?? .over
    }

    /// Returns the pause before the next attempt; nil if no time is left.
    private mutating func next(_ isWanted: Bool) -> Duration? {
        let pause = isWanted ? NamedLock.courtesy : backoff.next()
        guard let deadline else { return pause }
        let rest = deadline - .now
        return rest > .zero ? min(pause, rest) : nil
    }
}
