// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Evictions from the candidate list that a sweep leaves.
@Suite(.takesTurns) struct SweepEvictionTests {
    private let fixture: StoreFixture

    init() throws {
        fixture = try StoreFixture()
    }

    /// Stores entries from `key 0` on, used a day ago, each a second after the previous one.
    private func fill(_ count: Int) throws {
        let begin = Timestamp.now - .seconds(24 * 3600)
        for index in 0..<count {
            try fixture.store.put(
                Array("value \(index)".utf8).span,
                for: Digest(ofKey: "key \(index)"),
                fixture.record("value \(index)", created: begin + .seconds(index))
            )
        }
    }

    /// Sweeps with a limit that is not exceeded, as a sweep without limits leaves no list.
    @discardableResult
    private func sweep(_ change: (inout SweepRequest) -> Void = { _ in }) throws -> CollectionReport {
        try fixture.sweep {
            $0.limits.maximumEntries = 1000
            change(&$0)
        }
    }

    private func evict(entries: Int = 0, bytes: Int64 = 0) throws -> CollectionReport? {
        try ListedEviction.run(Excess(entries: entries, size: bytes), on: fixture.store, now: .now)
    }

    /// Returns the remaining entries without reading them, which would be an access.
    private func left(of count: Int) -> [Int] {
        (0..<count).filter { FileManager.default.fileExists(atPath: fixture.entryPath("key \($0)")) }
    }

    private var listPath: String { fixture.path + "/candidates" }

    @Test func `the requested number of least recently used entries is evicted with their objects`() throws {
        try fill(40)
        #expect(try evict(entries: 1)?.isExhausted == true, "no sweep has left a list yet")
        let kept = try sweep()
        let first = try #require(try evict(entries: 5))
        #expect(first.removedInAll.count == 5 && first.spared == 0 && !first.isExhausted)
        #expect(left(of: 40) == Array(5..<40))
        #expect(fixture.objects.count == 35)
        let horizon = try #require(first.evictionAge)
        #expect(abs((horizon - .seconds(24 * 3600 - 4)).saturatingNanoseconds) < 600_000_000_000)
        #expect(fixture.store.control.horizon == horizon)
        let usage = try #require(fixture.store.control.usage)
        #expect(usage.entries == 35)
        #expect(usage.bytes == kept.entries.bytes + kept.objects.bytes - first.removedInAll.bytes)
        #expect(fixture.store.counters[.sweptEntries] == 5)

        let second = try #require(try evict(bytes: first.removedInAll.bytes))
        #expect(second.removedInAll == first.removedInAll, "it goes on where the first has ended")
        let last = try #require(try evict(entries: 100))
        #expect(last.removedInAll.count == 30 && last.isExhausted)
        #expect(fixture.entries.isEmpty && fixture.objects.isEmpty)
        #expect(fixture.store.control.usage?.bytes == 0)
        #expect(try evict(entries: 1)?.isExhausted == true)
    }

    @Test func `evictions from the list report the same limits as a sweep`() throws {
        try fill(9)
        try sweep()
        let one = try #require(try evict(entries: 1)).removedInAll.bytes
        let first = try #require(try evict(entries: 1, bytes: 3 * one))
        #expect(first.removed[.entries]?.count == 1 && first.removed[.size]?.count == 2)
        let last = try #require(try evict(entries: 1, bytes: 1))
        #expect(last.removed.count == 1 && last.removed[.entries]?.count == 1)
        let report = try sweep {
            $0.limits.maximumSize = .bytes(1)
            $0.limits.maximumEntries = 3
        }
        #expect(report.removed[.entries]?.count == 1 && report.removed[.size]?.count == 3)
    }

    @Test func `evictions from the list are logged like any others`() throws {
        try fill(6)
        try sweep()
        try fixture.store.configure { (configuration) throws(CacheError) in
            configuration.limits.eventLogSize = .mebibytes(1)
        }
        _ = try evict(entries: 2)
        var events: [LoggedRemoval] = []
        _ = try EventLog.forEach(in: fixture.store.directory) { events.append($0) }
        #expect(Set(events.map(\.keyDigest)) == [Digest(ofKey: "key 0"), Digest(ofKey: "key 1")])
        #expect(events.count == 2 && events.allSatisfy { $0.cause == .collected(.entries) })
    }

    @Test func `forged sizes in the list cause no overflow`() throws {
        let count = 2100
        try fill(count)
        try sweep { $0.limits.maximumEntries = count }
        let file = try fixture.store.directory.root.open(StoreLayout.candidates, .readOnly)
        let list = try #require(try CandidateList(in: file, datesAttributes: true))
        let largest = AllocatedSize(code: .max)
        let candidates = try list.next(count, in: file).map { candidate in
            let entry = SeenEntry(
                key: candidate.entry.key,
                content: candidate.entry.content,
                lastUse: candidate.entry.lastUse,
                allocatedSize: largest,
                inode: candidate.entry.inode,
                witness: candidate.entry.witness
            )
            return ListedCandidate(entry: entry, objectSize: largest)
        }
        CandidateList(stamp: list.stamp, count: count).write(candidates, in: fixture.store.directory)
        #expect(try evict(entries: count)?.removedInAll.count == count)
    }

    @Test func `entries used or changed since the sweep stay`() throws {
        try fill(6)
        try sweep()
        try fixture.put("other value", "key 0")
        _ = try fixture.get("key 1")
        _ = try fixture.store.remove(Digest(ofKey: "key 2"))
        try FileManager.default.removeItem(atPath: fixture.entryPath("key 3"))
        try fixture.put("value 3", "key 3")
        let report = try #require(try evict(entries: 6))
        #expect(report.removedInAll.count == 2 && report.spared == 4 && report.isExhausted)
        #expect(left(of: 6) == [0, 1, 3])
        #expect(try fixture.get("key 0") == "other value")
    }

    @Test func `an object stored again since the sweep stays, although its old entry is evicted`() throws {
        try fill(2)
        try sweep()
        try fixture.put("value 0", "another key")
        #expect(try evict(entries: 2)?.removedInAll.count == 2)
        #expect(try fixture.get("another key") == "value 0")
        #expect(fixture.objects.count == 1)
    }

    @Test func `the list omits entries that share an object`() throws {
        try fill(3)
        try fixture.put("value 0", "another key")
        try sweep()
        let report = try #require(try evict(entries: 10))
        #expect(report.removedInAll.count == 2 && report.isExhausted)
        #expect(left(of: 3) == [0])
    }

    @Test func `the list omits entries of a stripe that the barrier could not pass`() throws {
        try fill(2)
        let digest = Digest(of: Array("value 0".utf8).span)
        let other = try StoreFixture.open(fixture.path)
        let lock = try other.objects.stripes.lock(.shared, stripe: digest.stripe)
        var request = SweepRequest()
        request.limits.maximumEntries = 1000
        _ = try Sweep.run(request, on: fixture.store, now: .now)
        lock.release()
        _ = try evict(entries: 2)
        #expect(left(of: 2) == [0])
        #expect(fixture.objects.count == 1)
    }

    @Test func `no entry is evicted from the list while another process sweeps`() throws {
        try fill(1)
        try sweep()
        let lock = try LockFile.acquire(
            StoreLayout.janitorLock,
            in: fixture.store.directory.locks,
            patience: .zero
        )
        let report = try evict(entries: 1)
        #expect(report == nil)
        lock?.release()
        #expect(try evict(entries: 1)?.removedInAll.count == 1)
    }

    @Test
    func `only a full sweep with limits writes the list`()
        throws
    {
        try fill(3)
        try sweep { $0.isDryRun = true }
        try fixture.sweep { $0.limits.maximumAge = .seconds(1_000_000) }
        #expect(!FileManager.default.fileExists(atPath: listPath))
        try sweep()
        try sweep { $0.expiredOnly = true }
        #expect(try evict(entries: 3)?.removedInAll.count == 3)
    }

    @Test func `a list from before the clock was set back is ignored`() throws {
        try fill(3)
        try sweep()
        let file = try fixture.store.directory.root.open(StoreLayout.candidates, .readOnly)
        let list = try #require(try CandidateList(in: file, datesAttributes: true))
        let candidates = try list.next(10, in: file)
        #expect(candidates.count == 3)
        let clock = ClockCheck(time: .now + .seconds(10))
        let stamp = SweepStamp(time: list.stamp.time, clock: clock, datesAttributes: true)
        CandidateList(stamp: stamp, count: 3).write(candidates, in: fixture.store.directory)
        let report = try #require(try evict(entries: 3))
        #expect(report.removedInAll.count == 0 && report.isExhausted)
        #expect(left(of: 3) == [0, 1, 2])
    }

    @Test(arguments: [0, 8, 12, 20, 40, 58])
    func `a list with a damaged header is ignored`(offset: Int) throws {
        try fill(3)
        try sweep()
        try flip(offset)
        let report = try #require(try evict(entries: 3))
        #expect(report.removedInAll.count == 0 && report.isExhausted)
    }

    @Test func `a list ends at a damaged or truncated record`() throws {
        try fill(6)
        try sweep()
        try flip(72 + 92 * 3 + 50)
        #expect(try evict(entries: 6)?.removedInAll.count == 3)
        #expect(try evict(entries: 3)?.isExhausted == true)
        #expect(left(of: 6) == [3, 4, 5])
        try sweep()
        #expect(truncate(listPath, 72 + 92 + 91) == 0)
        #expect(try evict(entries: 6)?.removedInAll.count == 1)
        #expect(left(of: 6) == [4, 5])
    }

    @Test func `a link or FIFO in place of the list is ignored and not followed`() throws {
        try fill(2)
        let outside = fixture.directory.path + "/outside"
        makeFile(outside, "outside")
        #expect(symlink(outside, listPath) == 0)
        #expect(try evict(entries: 1)?.isExhausted == true)
        #expect(try String(contentsOfFile: outside, encoding: .utf8) == "outside")
        try FileManager.default.removeItem(atPath: listPath)
        #expect(mkfifo(listPath, 0o600) == 0)
        #expect(try evict(entries: 1)?.isExhausted == true)
        #expect(left(of: 2) == [0, 1])
        try sweep()
        #expect(try evict(entries: 1)?.removedInAll.count == 1)
    }

    private func flip(_ offset: Int) throws {
        var bytes = try Data(contentsOf: URL(fileURLWithPath: listPath))
        bytes[offset] ^= 1
        try bytes.write(to: URL(fileURLWithPath: listPath))
    }

    @Test func `a deadline ends an eviction, and the list stays valid`() throws {
        try fill(3)
        try sweep()
        var pace = SweepPace()
        pace.deadline = .now
        let report = try #require(
            try ListedEviction.run(Excess(entries: 3), on: fixture.store, now: .now, pace: pace)
        )
        #expect(report.removedInAll.count == 0 && !report.isExhausted)
        #expect(try evict(entries: 3)?.removedInAll.count == 3)
    }
}
