// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// When a process has to sweep: a pure function of what the last sweep of any of them has noted.
struct JanitorSchedule {
    /// How much longer than a sweep's work the time between two is at least: it takes a fiftieth of one
    /// processor at most, however large the cache is.
    static let workFactor = 50

    /// Shorter intervals would make nothing vanish sooner, as the janitor wakes up once a second.
    static let shortestInterval: Duration = .seconds(1)

    let interval: Duration
    /// Added to the interval as a share of it, so that the processes do not all come at once: 0 to 0.1.
    let jitter: Double

    init(interval: Duration, jitter: Double) {
        self.interval = max(Self.shortestInterval, interval)
        self.jitter = jitter
    }

    /// Whether to sweep now.
    ///
    /// What a killed process or one that ran out of time has left is taken over at once; whether the former is
    /// really dead, the lock tells.
    ///
    /// - Parameters:
    ///   - last: what the last sweep has noted.
    ///   - note: when the file that holds such notes was written, or made with the cache.
    func isDue(after last: SweepRecord?, noted note: Timestamp?, at now: Timestamp) -> Bool {
        guard let last else {
            guard let note else { return true }
            return isOver(interval, since: note, at: now)
        }
        if last.isUnfinished { return true }
        guard let full = last.lastFull else { return true }
        return isOver(max(interval, full.busy * Self.workFactor), since: full.began, at: now)
    }

    private func isOver(_ interval: Duration, since begin: Timestamp, at now: Timestamp) -> Bool {
        let length = Duration.nanoseconds(interval.saturatingNanoseconds)
        let elapsed = now - begin
        // A begin in the future means that the clock was put back; waiting for it could take years.
        return elapsed >= length + length * jitter || elapsed < .zero - Self.shortestInterval
    }
}
