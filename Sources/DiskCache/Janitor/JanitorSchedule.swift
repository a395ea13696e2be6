// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Decides when a process must sweep: a pure function of the record of the last sweep by any process.
struct JanitorSchedule {
    /// The minimum ratio of the time between two sweeps to a sweep's work: sweeping takes at most a fiftieth of one
    /// processor, however large the cache is.
    static let workFactor = 50

    /// The minimum interval: shorter ones would remove nothing sooner, as the janitor wakes up once a second.
    static let shortestInterval: Duration = .seconds(1)

    let interval: Duration
    /// The share of the interval that is added to it, so that the processes do not all sweep at once: 0 to 0.1.
    let jitter: Double

    init(interval: Duration, jitter: Double) {
        self.interval = max(Self.shortestInterval, interval)
        self.jitter = jitter
    }

    /// Returns whether to sweep now.
    ///
    /// An unfinished sweep of a process that was killed, or ran out of time, is taken over at once. The lock shows whether
    /// the process is really dead.
    ///
    /// - Parameters:
    ///   - last: the last sweep's record.
    ///   - note: when the file of these records was written, or created with the cache.
    ///   - rules: when the latest rule that removes many values was made; nil if none is in force.
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
        // Values that a rule removes take space until a sweep that has started after it.
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
