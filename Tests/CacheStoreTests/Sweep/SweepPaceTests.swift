// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct SweepPaceTests {
    /// Returns a pace that allows the given number of steps, each followed by a rest.
    private func pace(steps: Int, during rest: @escaping @Sendable () -> Void = {}) -> SweepPace {
        let left = Locked<Int>.Box(steps)
        var pace = SweepPace()
        pace.slice = .zero
        pace.pause = { _ in
            rest()
            return left.value.withLock { left in
                left -= 1
                return left >= 0
            }
        }
        return pace
    }

    private func filled(_ count: Int, expires: Timestamp? = .now) throws -> StoreFixture {
        let fixture = try StoreFixture()
        for index in 0..<count { try fixture.put("value \(index)", "key \(index)", expires: expires) }
        return fixture
    }

    @Test(arguments: [true, false])
    func `a cancelled sweep is incomplete, and the next one completes it`(expiredOnly: Bool) throws {
        let fixture = try filled(40)
        // 64 stripes of the barrier and two kinds of leftovers come first.
        let first = try fixture.sweep {
            $0.expiredOnly = expiredOnly
            $0.pace = pace(steps: 66 + 20)
        }
        #expect(!first.isComplete)
        #expect((15...20).contains(first.removed[.expired]?.count ?? 0))
        #expect(fixture.entries.count == 40 - (first.removed[.expired]?.count ?? 0))
        #expect(fixture.objects.count == 40, "no object goes before all entries were looked at")
        // The objects of entries removed before are orphans now, which the next full sweep deletes.
        let second = try fixture.sweep { $0.expiredOnly = expiredOnly }
        #expect(second.isComplete)
        #expect(fixture.entries.isEmpty)
        try fixture.sweep()
        #expect(fixture.objects.isEmpty)
    }

    @Test(arguments: [Duration?.none, .zero])
    func `a sweep can be cancelled at any pace`(slice: Duration?) throws {
        let fixture = try filled(40)
        let questions = Locked<Int>.Box(0)
        let report = try fixture.sweep {
            $0.pace.slice = slice
            $0.pace.isCancelled = {
                questions.value.withLock { count in
                    count += 1
                    return count > 66 + 20
                }
            }
        }
        #expect(!report.isComplete)
        #expect(!fixture.entries.isEmpty && fixture.entries.count < 40)
        #expect(try fixture.sweep().isComplete && fixture.entries.isEmpty)
    }

    @Test func `a sweep that may be cancelled deletes expired entries soon after it reads them`() throws {
        let fixture = try StoreFixture()
        // All in one shard, which is listed at once.
        let keys = (0...).lazy.map { "key \($0)" }.filter { Digest(ofKey: $0).bytes[0] == 0 }.prefix(40)
        for key in keys { try fixture.put(key, key, expires: .now) }
        // The 66 steps before the scan, and 20 more: 8 entries are read and deleted, and others started.
        let report = try fixture.sweep {
            $0.expiredOnly = true
            $0.pace = pace(steps: 66 + 20)
        }
        #expect(!report.isComplete)
        #expect(report.removed[.expired]?.count ?? 0 >= 8)
    }

    @Test func `a sweep past its deadline deletes nothing more and reports that it is incomplete`() throws {
        let fixture = try filled(10)
        let report = try fixture.sweep { $0.pace.deadline = .now }
        #expect(!report.isComplete && report.removed.isEmpty)
        #expect(fixture.entries.count == 10)
        let record = try #require(SweepRecord.last(in: fixture.store.directory))
        #expect(record.isUnfinished && record.ended != nil && record.lastFull == nil)
    }

    @Test func `the deadline holds although a stripe's lock holder is stopped`() throws {
        let fixture = try filled(10)
        let other = try StoreFixture.open(fixture.path)
        let digest = Digest(of: Array("value 1".utf8).span)
        // The time that the barrier waits for the holder without a deadline.
        let patience = SweepRequest().stripePatience
        let lock = try other.objects.stripes.lock(.shared, stripe: digest.stripe)
        let time = try shortestTime(below: patience) { () throws(CacheError) in
            var request = SweepRequest()
            request.pace.deadline = .now + patience / 10
            #expect(try !Sweep.run(request, on: fixture.store, now: .now).isComplete)
        }
        #expect(time < patience)
        lock.release()
    }

    @Test func `a sweep rests between single files, while it holds no stripe`() throws {
        let fixture = try filled(30, expires: nil)
        for index in 0..<10 { _ = try fixture.store.remove(Digest(ofKey: "key \(index)")) }
        let other = try StoreFixture.open(fixture.path)
        let rests = Atomic<Int>(0)
        let refusals = FailureCount()
        let report = try fixture.sweep {
            $0.limits.maximumEntries = 10
            $0.pace = pace(steps: .max) {
                rests.add(1, ordering: .relaxed)
                for stripes in [other.objects.stripes, other.entries.stripes] {
                    let held = try? stripes.barrier { _ in .zero }
                    if held != [] { refusals.add("\(String(describing: held))") }
                }
            }
        }
        #expect(report.isComplete && refusals.all.isEmpty)
        #expect(report.removed[.orphan]?.count == 10 && report.removed[.entries]?.count == 10)
        #expect(rests.load(ordering: .relaxed) > 64 + 20 + 20 + 10)
    }

    @Test func `a sparing sweep works a fifth of the time`() throws {
        // Enough entries to keep this machine busy for two slices.
        var (count, busy, rest) = (300, Duration.zero, Duration.zero)
        while busy < .milliseconds(8), count < 100_000 {
            let fixture = try filled(count, expires: nil)
            let rested = Locked<Duration>.Box(.zero)
            busy = try fixture.sweep {
                $0.pace = .sparing { time in
                    rested.value.withLock { $0 += time }
                    return true
                }
            }.worked
            rest = rested.value.withLock { $0 }
            count *= 3
        }
        // Each slice takes at least 4 ms, longer on a busy machine, and is followed by its rest.
        #expect(rest >= .milliseconds(16) && rest <= busy * 4)
    }

    // MARK: The record of a sweep

    @Test func `any process can read the record of a running, ended or killed sweep`() throws {
        let fixture = try filled(3)
        #expect(SweepRecord.last(in: fixture.store.directory) == nil)
        let seen = Locked<SweepRecord?>.Box(nil)
        try fixture.sweep {
            $0.pace = pace(steps: .max) {
                seen.value.withLock { $0 = SweepRecord.last(in: fixture.store.directory) }
            }
        }
        let during = try #require(seen.value.withLock { $0 })
        #expect(during.ended == nil && during.isUnfinished && during.process == CurrentProcess.identifier)
        let after = try #require(SweepRecord.last(in: fixture.store.directory))
        #expect(!after.isUnfinished && after.report.removed[.expired]?.count == 3)
        #expect(after.lastFull?.began == after.began && after.report.worked > .zero)
        try fixture.sweep { $0.expiredOnly = true }
        let last = try #require(SweepRecord.last(in: fixture.store.directory))
        #expect(last.expiredOnly && last.lastFull == after.lastFull)
        try fixture.sweep { $0.isDryRun = true }
        #expect(SweepRecord.last(in: fixture.store.directory) == last, "a rehearsal leaves no word")
    }

    @Test func `the longest record fits, and malformed records are rejected`() throws {
        var report = CollectionReport()
        report.worked = .nanoseconds(Int64.max)
        for reason in RemovalReason.allCases {
            // Larger numbers are clamped to this one when read.
            report.removed[reason] = CollectionReport.Tally(count: 1 << 56, bytes: 1 << 56)
        }
        report.entries = try #require(report.removed[.size])
        report.objects = report.entries
        report.drift = report.entries
        var record = SweepRecord(beginning: SweepRequest(), after: nil)
        record.end(report)
        #expect(record.text.utf8.count < 2048)
        #expect(SweepRecord(text: record.text)?.text == record.text)
        #expect(
            SweepRecord(text: record.text + String(repeating: " ", count: 99) + "\n")?.text == record.text
        )
        for text in ["", "end", "sweep 2\nbegan 1\nend", "sweep 1\nend", String(record.text.dropLast(9))] {
            #expect(SweepRecord(text: text) == nil)
        }
    }

    @Test func `a process checks again whether a sweep is due once it holds the janitor lock`() throws {
        let fixture = try filled(3)
        let request = SweepRequest()
        #expect(
            try Sweep.runIfDue(request, on: fixture.store, now: .now) { $0 != nil }?.isComplete == nil
        )
        #expect(fixture.entries.count == 3)
        try fixture.sweep { request in
            request.pace = pace(steps: .max) {
                #expect(throws: Never.self) {
                    let other = try Sweep.runIfDue(SweepRequest(), on: fixture.store, now: .now) { _ in
                        true
                    }
                    #expect(other?.isComplete == nil)
                }
            }
        }
        #expect(
            try Sweep.runIfDue(request, on: fixture.store, now: .now) { $0 != nil }?.isComplete == true
        )
    }

    // MARK: Leftovers

    @Test func `flight locks without a holder are deleted, and no other files`() throws {
        let fixture = try StoreFixture()
        let locks = fixture.path + "/locks/"
        let key = Digest(ofKey: "key").description
        let held = Digest(ofKey: "held").description
        for name in ["flight-\(key)", "flight-\(held)", "flight-notes"] { makeFile(locks + name) }
        let other = try LockFile.acquire(
            RelativePath("flight-\(held)"),
            in: fixture.store.directory.locks,
            patience: .zero
        )
        let before = Set(fixture.directory.files(below: "cache/locks"))
        let rehearsal = try fixture.sweep { $0.isDryRun = true }
        #expect(rehearsal.removed[.staleTemporary]?.count == 1)
        #expect(Set(fixture.directory.files(below: "cache/locks")) == before)
        #expect(try fixture.sweep().removed[.staleTemporary]?.count == 1)
        #expect(before.subtracting(fixture.directory.files(below: "cache/locks")) == ["flight-\(key)"])
        other?.release()
    }

    @Test func `permanent files get a new modification time once they are old`() throws {
        let fixture = try StoreFixture()
        let names =
            fixture.directory.files(below: "cache/locks").map { "locks/" + $0 }
            + ["format", "README", "CACHEDIR.TAG"]
        #expect(names.count == 134)
        func oldest() throws -> Date {
            try names.map { name in
                let attributes = try FileManager.default.attributesOfItem(atPath: fixture.path + "/" + name)
                return try #require(attributes[.modificationDate] as? Date)
            }.min() ?? .now
        }
        for name in names {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -100_000)],
                ofItemAtPath: fixture.path + "/" + name
            )
        }
        try fixture.sweep()
        #expect(try oldest().timeIntervalSinceNow > -1000)
    }
}
