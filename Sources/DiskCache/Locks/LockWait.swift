// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The wait for a lock: attempts with pauses in between, until the time is up.
package struct LockWait: Sendable {
    /// What to do next.
    package enum Step: Sendable {
        /// Nothing: it is held.
        case acquired(FlightLock)
        /// Pause, and try again.
        case pause(Duration)
        /// Give up.
        case over
    }

    private var backoff = Backoff(upTo: NamedLock.longestPause)
    private let deadline: ContinuousClock.Instant?
    /// Whether the next attempt leaves the lock to those who wait for it already.
    private var givesWay: Bool
    private let waits: Bool

    /// Begins now.
    ///
    /// - Parameter limit: how long to wait at most; nil: without end.
    package init(within limit: Duration?) {
        deadline = limit.map { .now + .nanoseconds(max(0, $0.saturatingNanoseconds)) }
        // Who does not wait at all could not come back.
        waits = limit.map { $0 > .zero } ?? true
        givesWay = waits
    }

    /// Tries to get `lock`; never waits.
    package mutating func attempt(_ lock: NamedLock) throws(CacheError) -> Step {
        let (permit, isWanted) = try lock.attempt(givesWay: exchange(&givesWay, with: false), waits: waits)
        if let permit { return .acquired(permit) }
        if let pause = next(isWanted) { return .pause(pause) }
        return try lock.lastAttempt().map { .acquired($0) } ?? .over
    }

    /// How long to pause before the next attempt; nil: there is no time left.
    private mutating func next(_ isWanted: Bool) -> Duration? {
        let pause = isWanted ? NamedLock.courtesy : backoff.next()
        guard let deadline else { return pause }
        let rest = deadline - .now
        return rest > .zero ? min(pause, rest) : nil
    }
}
