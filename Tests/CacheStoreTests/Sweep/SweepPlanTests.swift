// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import CacheStore
@testable import Platform

/// The entries that a sweep removes, and the reasons, as functions of the scan.
@Suite(.takesTurns) struct SweepPlanTests {
    private let now = Timestamp(nanoseconds: 1_700_000_000_000_000_000)

    // MARK: Verdicts on single entries

    /// Returns the reason to remove an entry that was written `age` seconds ago and last used `used` seconds ago.
    private func verdict(
        age: Int,
        used: Int,
        expired: Bool = false,
        _ setLimits: (inout CacheLimits) -> Void = { _ in }
    ) -> RemovalReason? {
        var limits = CacheLimits()
        setLimits(&limits)
        var status = stat()
        status.st_atim = (now - .seconds(used)).fileTime
        let content = Content(digest: Digest(ofKey: "content"), length: 1, checksum: 0)
        var record = Record(content: content, created: now - .seconds(age))
        if expired { record.expires = now }
        return SeenEntry(Digest(ofKey: "key"), record, [], FileStatus(status), limits: limits, now: now)
            .verdict
    }

    @Test func `without limits only expired and corrupt entries are removed`() {
        #expect(verdict(age: 1000, used: 1000) == nil)
        #expect(verdict(age: 1, used: 1, expired: true) == .expired)
        let status = FileStatus(stat())
        let corrupt = SeenEntry(Digest(ofKey: "key"), nil, [], status, limits: CacheLimits(), now: now)
        #expect(corrupt.verdict == .corrupt)
    }

    @Test func `age counts from the write, idle time from the last use`() {
        #expect(verdict(age: 100, used: 1) { $0.maximumAge = .seconds(50) } == .age)
        #expect(verdict(age: 10, used: 10) { $0.maximumAge = .seconds(50) } == nil)
        #expect(verdict(age: 100, used: 1) { $0.maximumAge = .seconds(100) } == nil)
        #expect(verdict(age: 100, used: 1) { $0.maximumIdleTime = .seconds(5) } == nil)
        #expect(verdict(age: 10, used: 10) { $0.maximumIdleTime = .seconds(5) } == .idle)
        #expect(verdict(age: 100, used: 1, expired: true) { $0.maximumAge = .seconds(50) } == .expired)
    }

    // MARK: Evictions for the limits

    /// An entry without an allocated size, and the size of its object.
    private typealias Seen = (key: String, content: String, size: Int64)

    private func marks(_ entries: [Seen]) -> ContentMarks {
        var marks = ContentMarks(vacant: ContentMark())
        for entry in entries {
            let content = Digest(ofKey: entry.content)
            marks[content].noteReference(sizeClass: SweepAllocation.unknownClass)
            marks[content].presence = .present
            marks[content].allocatedSize = AllocatedSize(bytes: entry.size)
        }
        return marks
    }

    private func entry(_ seen: Seen) -> SeenEntry {
        SeenEntry(
            key: Digest(ofKey: seen.key),
            content: Digest(ofKey: seen.content),
            lastUse: now,
            allocatedSize: AllocatedSize(bytes: 0),
            inode: 0,
            witness: 0
        )
    }

    /// Returns the reasons for which entries are evicted, in order.
    private func plan(_ entries: [Seen], _ excess: Excess) -> [RemovalReason] {
        SweepPlan(entries.map(entry), marks: marks(entries), excess: excess).parts.flatMap {
            [RemovalReason](repeating: $0.reason, count: $0.count)
        }
    }

    private let five: [Seen] = (0..<5).map { ("k\($0)", "c\($0)", 512) }

    @Test func `the first entries are evicted until the excess is gone`() {
        #expect(plan(five, Excess()).isEmpty)
        #expect(plan(five, Excess(entries: 2)) == [.entries, .entries])
        #expect(plan(five, Excess(size: 1)) == [.size])
        #expect(plan(five, Excess(size: 512)) == [.size])
        #expect(plan(five, Excess(size: 513)) == [.size, .size])
        #expect(plan(five, Excess(freeSpace: 513)) == [.freeSpace, .freeSpace])
        #expect(plan(five, Excess(size: 100_000)).count == 5)
        #expect(plan([], Excess(size: 1)).isEmpty)
    }

    @Test func `an eviction for one limit counts towards the others`() {
        #expect(plan(five, Excess(entries: 1, size: 512)) == [.entries])
        #expect(plan(five, Excess(entries: 1, size: 1024)) == [.entries, .size])
        let all: [RemovalReason] = [.entries, .size, .freeSpace]
        #expect(plan(five, Excess(entries: 1, size: 1024, freeSpace: 1536)) == all)
    }

    @Test func `shared content takes its space until its last entry is evicted`() {
        let entries: [Seen] = [("a", "S", 512), ("b", "S", 512), ("c", "T", 512)]
        #expect(plan(entries, Excess(size: 1)).count == 2)
        #expect(plan(entries.reversed(), Excess(size: 1)).count == 1)
    }

    @Test func `missing content takes no space`() {
        var marks = ContentMarks(vacant: ContentMark())
        marks[Digest(ofKey: "c0")].noteReference(sizeClass: 0)
        let plan = SweepPlan([entry(five[0])], marks: marks, excess: Excess(size: 1))
        #expect(plan.count == 1)
        #expect(SweepPlan(five[..<2].map(entry), marks: marks, excess: Excess(size: 1)).count == 2)
    }

    // MARK: Comparison with an exact LRU list

    /// Returns the reasons of one eviction after another until the limits hold, computed in the simplest way.
    private func evictedByList(_ cache: [Seen], entries: Int, size: Int64, freeSpace: Int64)
        -> [RemovalReason]
    {
        var left = cache[...]
        func total() -> Int64 {
            Dictionary(left.map { ($0.content, $0.size) }) { $1 }.values.reduce(0, +)
        }
        let begin = total()
        var evicted: [RemovalReason] = []
        while !left.isEmpty {
            if left.count > entries {
                evicted.append(.entries)
            } else if total() > size {
                evicted.append(.size)
            } else if begin - total() < freeSpace {
                evicted.append(.freeSpace)
            } else {
                break
            }
            left.removeFirst()
        }
        return evicted
    }

    @Test func `the plan evicts the same entries as an exact LRU list`() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<200 {
            let cache: [Seen] = (0..<Int.random(in: 1...300, using: &generator)).map { index in
                let content = Int.random(in: 0...200, using: &generator)
                return ("k\(index)", "c\(content)", Int64(content % 7) * 512)
            }
            let total = Dictionary(cache.map { ($0.content, $0.size) }) { $1 }.values.reduce(0, +)
            let entries = Int.random(in: 0...cache.count, using: &generator)
            let size = Int64.random(in: 0...total, using: &generator)
            let freeSpace = Int64.random(in: 0...total, using: &generator)
            let excess = Excess(entries: cache.count - entries, size: total - size, freeSpace: freeSpace)
            let expected = evictedByList(cache, entries: entries, size: size, freeSpace: freeSpace)
            #expect(plan(cache, excess) == expected)
        }
    }
}
