// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// When a process must sweep: a pure function of what the last sweep by any process has noted.
struct JanitorSchedule {
    /// The least ratio of the time between two sweeps to a sweep's work: sweeping takes a fiftieth of one
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
    /// What was left by a process that was killed, or that ran out of time, is taken over at once. The lock
    /// tells whether the process is really dead.
    ///
    /// - Parameters:
    ///   - last: what the last sweep has noted.
    ///   - note: when the file that holds such notes was written, or created with the cache.
    ///   - rules: when the latest rule was made by which many values are to go; nil if none is in force.
    func isDue(
        after last: SweepRecord?,
        noted note: Timestamp?,
        rules: Timestamp? = nil,
        at now: Timestamp
    ) -> Bool {
        guard let last else {
            guard let note else { return true }
            return isOver(interval, since: note, at: now)
        }
        if last.isUnfinished { return true }
        guard let full = last.lastFull else { return true }
        // What a rule was made for takes room until a sweep that has begun after it.
        let hasRules = rules.map { full.began < $0 } ?? false
        let length = max(hasRules ? Self.shortestInterval : interval, full.busy * Self.workFactor)
        return isOver(length, since: full.began, at: now)
    }

    private func isOver(_ interval: Duration, since begin: Timestamp, at now: Timestamp) -> Bool {
        let length = Duration.nanoseconds(interval.saturatingNanoseconds)
        let elapsed = now - begin
        // A start in the future means that the clock was set back; waiting for it could take years.
        return elapsed >= length + length * jitter || elapsed < .zero - Self.shortestInterval
    }
}
