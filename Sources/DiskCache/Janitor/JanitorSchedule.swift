// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Decides when a process must sweep: a pure function of the record of the last sweep by any process.
struct JanitorSchedule {
    /// The minimum ratio of the time between two sweeps to the work of one: sweeping takes at most a fiftieth of one
    /// processor, however large the cache is.
    static let workFactor = 50

    /// The minimum interval: as the janitor wakes up once a second, a shorter one would remove nothing sooner.
    static let shortestInterval: Duration = .seconds(1)

    let interval: Duration
    /// The share of the interval that is added to it, 0 to 0.1, so that the processes do not all sweep at once.
    let jitter: Double

    init(interval: Duration, jitter: Double) {
        self.interval = max(Self.shortestInterval, interval)
        self.jitter = jitter
    }

    /// Returns whether to sweep now.
    ///
    /// An unfinished sweep is taken over at once: its process was killed, or ran out of time. If that process is still
    /// sweeping, it holds the lock.
    ///
    /// - Parameters:
    ///   - last: the last sweep's record; nil if there is none.
    ///   - note: when the file of the last sweep's record was written, or created with the cache; nil if that is not
    ///     known.
    ///   - rules: when the latest rule that removes many values was created; nil if no rule is in force.
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
        // Values that a rule removes take space until a sweep that starts after the rule was created.
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
