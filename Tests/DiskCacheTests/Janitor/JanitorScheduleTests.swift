// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

@Suite(.takesTurns) struct JanitorScheduleTests {
    private let schedule = JanitorSchedule(interval: .seconds(60), jitter: 0)
    private let start = Timestamp.now

    private func record(_ change: (inout CollectionReport) -> Void = { _ in }) -> SweepRecord {
        var report = CollectionReport()
        change(&report)
        var record = SweepRecord(beginning: SweepRequest(), after: nil)
        record.end(report)
        record.began = start
        record.lastFull?.began = start
        return record
    }

    private func isDue(_ record: SweepRecord?, after seconds: Int, _ schedule: JanitorSchedule? = nil) -> Bool
    {
        (schedule ?? self.schedule).isDue(after: record, noted: start, at: start + .seconds(seconds))
    }

    @Test func `a sweep is due an interval after the last one began`() {
        #expect(!isDue(record(), after: 59))
        #expect(isDue(record(), after: 60))
    }

    @Test func `each process adds its jitter to the interval`() {
        let later = JanitorSchedule(interval: .seconds(60), jitter: 0.1)
        #expect(!isDue(record(), after: 65, later))
        #expect(isDue(record(), after: 66, later))
    }

    @Test func `the interval grows with the work that a sweep takes`() {
        let long = record { $0.worked = .seconds(10) }
        #expect(!isDue(long, after: 499))
        #expect(isDue(long, after: 500))
    }

    @Test func `a new rule makes a sweep due early, unless a sweep has begun since`() {
        func isDue(_ record: SweepRecord, made: Int, after seconds: Int) -> Bool {
            schedule.isDue(
                after: record,
                noted: start,
                rules: start + .seconds(made),
                at: start + .seconds(seconds)
            )
        }
        #expect(isDue(record(), made: 5, after: 5))
        #expect(!isDue(record(), made: 0, after: 5))
        #expect(!isDue(record(), made: -1, after: 5))
        let long = record { $0.worked = .seconds(1) }
        #expect(!isDue(long, made: 5, after: 49) && isDue(long, made: 5, after: 50))
    }

    @Test func `an unfinished sweep is due again at once`() {
        #expect(isDue(record { $0.isComplete = false }, after: 0))
        var killed = record()
        killed.ended = nil
        #expect(isDue(killed, after: 0))
    }

    @Test func `without a record the interval starts at the time of its file`() {
        #expect(!isDue(nil, after: 59))
        #expect(isDue(nil, after: 60))
        #expect(schedule.isDue(after: nil, noted: nil, at: start))
    }

    @Test func `sweeps of expired entries do not delay full sweeps`() {
        var record = record()
        record.expiredOnly = true
        record.began = start + .seconds(59)
        #expect(isDue(record, after: 60))
        record.lastFull = nil
        #expect(isDue(record, after: 0))
    }

    @Test func `a clock that is set back does not delay the next sweep indefinitely`() {
        #expect(!isDue(record(), after: -1))
        #expect(isDue(record(), after: -2))
    }

    @Test func `an interval of zero is treated as one second`() {
        let restless = JanitorSchedule(interval: .zero, jitter: 0)
        #expect(!isDue(record(), after: 0, restless))
        #expect(isDue(record(), after: 1, restless))
    }
}
