// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import CacheStore
@testable import Platform

@Suite struct SweepPlanTests {
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
        let record = seen.content.map { content in
            var record = Record(
                content: Content(digest: Digest(ofKey: content), length: 1, checksum: 0),
                created: now - .seconds(seen.age)
            )
            if seen.isExpired { record.expires = now }
            return record
        }
        let entry = SeenEntry(
            Digest(ofKey: seen.name),
            record,
            [],
            FileStatus(status),
            limits: limits,
            now: now
        )
        return SweepState.Sighting(entry: entry, content: record?.content.digest)
    }

    private func removals(
        _ entries: [Seen],
        _ objects: [(Digest, FileStatus)],
        _ setLimits: (inout SweepLimits) -> Void = { _ in }
    ) -> [Int: SweepReason] {
        var limits = SweepLimits()
        setLimits(&limits)
        var state = SweepState()
        let expired = state.note(entries.map { sighting($0, limits) })
        for object in objects { state.noteObject(object.0, object.1) }
        let plan = SweepPlan(entries: state.entries, contents: state.contents, limits: limits)
        var removals = Dictionary(
            uniqueKeysWithValues: (plan.worthless + plan.excess).map { removal in
                (state.entries[Int(removal.index)].key, removal.reason)
            }
        )
        for removal in expired { removals[removal.entry.key] = removal.reason }
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
        let seen = ["a", "b", "c"].map { entry($0, content: $0.uppercased(), age: 1) }
        _ = state.note(seen.map { sighting($0, SweepLimits()) })
        let place = state.contents.place(of: Digest(ofKey: "A"))
        state.contents[place].presence = .unreadable
        state.contents.noteUnreadable(shard: Int(Digest(ofKey: "B").bytes[0]))
        let plan = SweepPlan(entries: state.entries, contents: state.contents, limits: SweepLimits())
        #expect(plan.worthless == [SweepPlan.Removal(index: 2, reason: .dangling)])
    }
}
