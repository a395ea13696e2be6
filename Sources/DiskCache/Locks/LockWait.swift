// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The wait for a lock: how long to pause, again and again, until the time is up.
package struct LockWait {
    private var backoff = Backoff(upTo: NamedLock.longestPause)
    private let deadline: ContinuousClock.Instant?

    /// Begins now.
    ///
    /// - Parameter limit: how long to wait at most; nil: without end.
    package init(within limit: Duration?) {
        deadline = limit.map { .now + .nanoseconds(max(0, $0.saturatingNanoseconds)) }
    }

    /// How long to pause before the next attempt; nil: there is no time left.
    package mutating func next() -> Duration? {
        let pause = backoff.next()
        guard let deadline else { return pause }
        let rest = deadline - .now
        return rest > .zero ? min(pause, rest) : nil
    }
}
