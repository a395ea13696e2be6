// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import CacheStore
@testable import Platform

@Suite(.takesTurns) struct SweepPlanTests {
    let now = Timestamp(nanoseconds: 1_700_000_000_000_000_000)

    /// An entry, and a content for each name.
    private struct Seen {
        let name: String
        let content: String?
        let age: Int
        let used: Int
        var isExpired = false
    }

    /// An entry whose last use and creation lie `age` seconds back.
    private func entry(
        _ name: String,
        content: String?,
        age: Int,
        used: Int? = nil,
        isExpired: Bool = false
    ) -> Seen {
        Seen(name: name, content: content, age: age, used: used ?? age, isExpired: isExpired)
    }

    private func object(_ name: String, size: Int64 = 512) -> (Digest, FileStatus) {
        var status = stat()
        status.st_mode = S_IFREG
        status.st_blocks = numericCast(size / 512)
        return (Digest(ofKey: name), FileStatus(status))
    }

    private func sighting(_ seen: Seen, _ limits: SweepLimits) -> SweepState.Sighting {
        var status = stat()
        status.st_mode = S_IFREG
        status.st_atim = (now - .seconds(seen.used)).fileTime
        let (key, file) = (Digest(ofKey: seen.name), FileStatus(status))
        guard let content = seen.content else {
            return SweepState.Sighting(entry: SeenEntry(corrupt: key, [], file, now: now))
        }
        var record = Record(
            content: Content(digest: Digest(ofKey: content), length: 1, checksum: 0),
            created: now - .seconds(seen.age)
        )
        if seen.isExpired { record.expires = now }
        let entry = SeenEntry(key, record, [], file, limits: limits, now: now)
        return SweepState.Sighting(entry: entry)
    }

    private func removals(
        _ entries: [Seen],
        _ objects: [(Digest, FileStatus)],
        _ setLimits: (inout SweepLimits) -> Void = { _ in }
    ) -> [Int: SweepReason] {
        var limits = SweepLimits()
        setLimits(&limits)
        var state = SweepState()
        var request = SweepRequest()
        request.limits = limits
        state.beginPass(request, wanted: 0)
        let sightings = entries.map { sighting($0, limits) }
        var gone = state.note(sightings)
        for object in objects { _ = state.noteObject(object.0, object.1) }
        gone += state.dangling(sightings)
        for removal in gone { state.note(removal, .deleted) }
        state.dropMissing()
        // What only they named goes with them.
        for object in objects {
            guard let mark = state.marks.mark(of: object.0), mark.references == 0 else { continue }
            let object = SweepState.Unreferenced(
                digest: object.0,
                allocatedSize: mark.allocatedSize,
                freed: mark.freed
            )
            state.note(object, .deleted)
        }
        var removals = Dictionary(uniqueKeysWithValues: gone.map { ($0.entry.key, $0.reason) })
        let order = state.candidates.inOrder().map { state.candidates.entries[Int($0)] }
        let plan = SweepPlan(order, marks: state.marks, excess: state.excess(over: limits, nil))
        for position in 0..<plan.count { removals[order[position].key] = plan.reason(at: position) }
        return Dictionary(
            uniqueKeysWithValues: entries.enumerated().compactMap { (index, entry) in
                removals[Digest(ofKey: entry.name)].map { (index, $0) }
            }
        )
    }

    @Test func `without limits only what is worthless goes`() {
        let entries = [
            entry("good", content: "A", age: 1000), entry("expired", content: "A", age: 1, isExpired: true),
            entry("broken", content: nil, age: 1), entry("dangling", content: "gone", age: 1),
        ]
        #expect(removals(entries, [object("A")]) == [1: .expired, 2: .corrupt, 3: .dangling])
    }

    @Test func `the least recently used go first, as many as are too many`() {
        let entries = (0..<5).map { entry("k\($0)", content: "c\($0)", age: 100, used: [3, 9, 1, 7, 5][$0]) }
        let objects = (0..<5).map { object("c\($0)") }
        #expect(removals(entries, objects) { $0.maximumEntries = 3 } == [1: .entries, 3: .entries])
        #expect(removals(entries, objects) { $0.maximumSize = 3 * 512 } == [1: .size, 3: .size])
        #expect(removals(entries, objects) { $0.maximumSize = 5 * 512 }.isEmpty)
        #expect(removals(entries, objects) { $0.maximumSize = 5 * 512 - 1 } == [1: .size])
        #expect(removals(entries, objects) { $0.maximumSize = 0 }.count == 5)
    }

    @Test func `what goes for other reasons counts towards the limits`() {
        let entries = [
            entry("old", content: "A", age: 100), entry("expired", content: "B", age: 1, isExpired: true),
            entry("dangling", content: "C", age: 1),
        ]
        let objects = [object("A"), object("B")]
        let worthless: [Int: SweepReason] = [1: .expired, 2: .dangling]
        #expect(removals(entries, objects) { $0.maximumEntries = 1 } == worthless)
        #expect(removals(entries, objects) { $0.maximumSize = 512 } == worthless)
    }

    @Test func `shared content takes its space until its last entry goes`() {
        let entries = [
            entry("a", content: "S", age: 9), entry("b", content: "S", age: 8),
            entry("c", content: "T", age: 7),
        ]
        let objects = [object("S"), object("T")]
        // 1024 bytes in all; to get to 512 both entries of S must go.
        #expect(removals(entries, objects) { $0.maximumSize = 768 } == [0: .size, 1: .size])
    }

    @Test func `age counts from writing, idle time from the last use`() {
        let entries = [
            entry("old but used", content: "A", age: 100, used: 1),
            entry("young", content: "A", age: 10, used: 10),
        ]
        #expect(removals(entries, [object("A")]) { $0.maximumAge = .seconds(50) } == [0: .age])
        #expect(removals(entries, [object("A")]) { $0.maximumIdleTime = .seconds(5) } == [1: .idle])
        #expect(removals(entries, [object("A")]) { $0.maximumAge = .seconds(100) }.isEmpty)
    }

    @Test func `orphans don't make entries go`() {
        let entries = [entry("a", content: "A", age: 1)]
        #expect(
            removals(entries, [object("A"), object("orphan", size: 10_240)]) { $0.maximumSize = 512 }.isEmpty
        )
    }

    @Test func `nothing at all is no trouble`() {
        #expect(removals([], []) { $0.maximumSize = 0 }.isEmpty)
    }

    @Test func `times are told apart however long the span is that they lie in`() {
        // A span of 100 years is cut into steps of 0.7 s.
        let year = 365 * 24 * 3600
        let entries = (0..<4).map {
            entry("k\($0)", content: "c\($0)", age: 100 * year, used: [100 * year, 12, 10, 11][$0])
        }
        let objects = (0..<4).map { object("c\($0)") }
        #expect(removals(entries, objects) { $0.maximumEntries = 2 } == [0: .entries, 1: .entries])
        #expect(removals(entries, objects) { $0.maximumEntries = 1 }.keys.sorted() == [0, 1, 3])
    }

    @Test func `an object that could not be looked at leaves no entry dangling`() {
        var state = SweepState()
        let sightings = ["a", "b", "c"].map {
            sighting(entry($0, content: $0.uppercased(), age: 1), SweepLimits())
        }
        _ = state.note(sightings)
        state.noteUnreadableObject(Digest(ofKey: "A"))
        state.unreadableShards = [Digest(ofKey: "B").bytes[0]]
        #expect(state.dangling(sightings).map(\.entry.key) == [Digest(ofKey: "c")])
    }

    // MARK: Against a least-recently-used list

    /// Entries that name contents, some of them the same, of a few sizes.
    private func randomCache(_ generator: inout SeededGenerator) -> [(seen: Seen, size: Int64)] {
        (0..<Int.random(in: 1...300, using: &generator)).map { index in
            let content = Int.random(in: 0...200, using: &generator)
            let used = Int.random(in: 0...50, using: &generator)
            return (
                entry("k\(index)", content: "c\(content)", age: 1000, used: used), Int64(content % 7) * 512
            )
        }
    }

    /// What is evicted one after the other until the limits hold, by the plainest means.
    private func evictedByList(
        _ cache: [(seen: Seen, size: Int64)],
        entries: Int,
        size: Int64,
        freeSpace: Int64
    ) -> [String: SweepReason] {
        var left = cache.sorted { left, right in
            left.seen.used == right.seen.used
                ? Digest(ofKey: left.seen.name).word(0) < Digest(ofKey: right.seen.name).word(0)
                : left.seen.used > right.seen.used
        }
        func total() -> Int64 {
            Dictionary(left.map { ($0.seen.content ?? "", $0.size) }) { $1 }.values.reduce(0, +)
        }
        let begin = total()
        var evicted: [String: SweepReason] = [:]
        while let first = left.first {
            if left.count > entries {
                evicted[first.seen.name] = .entries
            } else if total() > size {
                evicted[first.seen.name] = .size
            } else if begin - total() < freeSpace {
                evicted[first.seen.name] = .freeSpace
            } else {
                break
            }
            left.removeFirst()
        }
        return evicted
    }

    @Test func `who goes is who would go from an exact list of the least recently used`() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<200 {
            let cache = randomCache(&generator)
            var state = SweepState()
            state.candidates = SweepCandidates(wanted: 0)
            _ = state.note(cache.shuffled(using: &generator).map { sighting($0.seen, SweepLimits()) })
            for item in cache {
                _ = state.noteObject(
                    object(item.seen.content ?? "", size: item.size).0,
                    object("", size: item.size).1
                )
            }
            let sizes = Dictionary(cache.map { ($0.seen.content ?? "", $0.size) }) { $1 }
            let total = sizes.values.reduce(0, +)
            let entries = Int.random(in: 0...cache.count, using: &generator)
            let size = Int64.random(in: 0...total, using: &generator)
            let freeSpace = Int64.random(in: 0...total, using: &generator)
            let order = state.candidates.inOrder().map { state.candidates.entries[Int($0)] }
            let excess = SweepExcess(entries: cache.count - entries, size: total - size, freeSpace: freeSpace)
            let plan = SweepPlan(order, marks: state.marks, excess: excess)
            var planned: [Digest: SweepReason] = [:]
            for position in 0..<plan.count { planned[order[position].key] = plan.reason(at: position) }
            let expected = evictedByList(cache, entries: entries, size: size, freeSpace: freeSpace)
            #expect(
                planned == Dictionary(uniqueKeysWithValues: expected.map { (Digest(ofKey: $0), $1) })
            )
        }
    }
}
