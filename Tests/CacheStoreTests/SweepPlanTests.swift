// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CacheStore
@testable import Platform

@Suite struct SweepPlanTests {
    let now = Timestamp(nanoseconds: 1_700_000_000_000_000_000)

    private func content(_ name: String?) -> Digest? {
        name.map { Digest(ofKey: $0) }
    }

    /// An entry whose last use and creation lie `age` seconds back.
    private func entry(
        _ name: String,
        content: String?,
        age: Int,
        used: Int? = nil,
        isExpired: Bool = false
    ) -> ScannedEntry {
        ScannedEntry(
            key: Digest(ofKey: name),
            content: self.content(content),
            created: now - .seconds(age),
            lastUse: now - .seconds(used ?? age),
            isExpired: isExpired,
            allocatedSize: 0,
            witness: ScannedEntry.Witness(
                identity: FileStatus.Identity(device: 0, inode: 0),
                accessed: now,
                record: 0
            )
        )
    }

    private func object(_ name: String, size: Int64 = 100) -> ScannedObject {
        ScannedObject(digest: Digest(ofKey: name), allocatedSize: size, changed: now)
    }

    private func removals(
        _ entries: [ScannedEntry],
        _ objects: [ScannedObject],
        _ setLimits: (inout SweepLimits) -> Void = { _ in }
    ) -> [Int: SweepReason] {
        var limits = SweepLimits()
        setLimits(&limits)
        let plan = SweepPlan(entries: entries, objects: objects, limits: limits, now: now)
        return Dictionary(uniqueKeysWithValues: plan.removals.map { ($0.index, $0.reason) })
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
        #expect(removals(entries, objects) { $0.maximumSize = 300 } == [1: .size, 3: .size])
        #expect(removals(entries, objects) { $0.maximumSize = 500 }.isEmpty)
        #expect(removals(entries, objects) { $0.maximumSize = 499 } == [1: .size])
        #expect(removals(entries, objects) { $0.maximumSize = 0 }.count == 5)
    }

    @Test func `what goes for other reasons counts towards the limits`() {
        let entries = [
            entry("old", content: "A", age: 100), entry("expired", content: "B", age: 1, isExpired: true),
        ]
        let objects = [object("A"), object("B")]
        #expect(removals(entries, objects) { $0.maximumEntries = 1 } == [1: .expired])
        #expect(removals(entries, objects) { $0.maximumSize = 100 } == [1: .expired])
    }

    @Test func `shared content takes its space until its last entry goes`() {
        let entries = [
            entry("a", content: "S", age: 9), entry("b", content: "S", age: 8),
            entry("c", content: "T", age: 7),
        ]
        let objects = [object("S"), object("T")]
        // 200 bytes in all; to get to 100 both entries of S must go.
        #expect(removals(entries, objects) { $0.maximumSize = 150 } == [0: .size, 1: .size])
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
            removals(entries, [object("A"), object("orphan", size: 10_000)]) { $0.maximumSize = 100 }.isEmpty
        )
    }

    @Test func `nothing at all is no trouble`() {
        #expect(removals([], []) { $0.maximumSize = 0 }.isEmpty)
    }
}
