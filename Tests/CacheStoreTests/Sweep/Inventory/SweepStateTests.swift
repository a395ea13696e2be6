// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import CacheStore
@testable import Platform

@Suite(.takesTurns) struct SweepStateTests {
    @Test func `a candidate takes 88 bytes, and a mark 8`() {
        #expect(MemoryLayout<SeenEntry>.stride == 88)
        #expect(MemoryLayout<ContentMark>.stride == 8)
    }

    @Test(arguments: [0, 512, 4096, 1 << 40 - 512] as [Int64])
    func `sizes up to 1 TiB are exact to the block`(size: Int64) {
        #expect(AllocatedSize(bytes: size).bytes == size)
    }

    @Test func `impossible sizes do not trap, and larger sizes are rounded up`() {
        #expect(AllocatedSize(bytes: -1).bytes == 0)
        #expect(AllocatedSize(bytes: 1).bytes == 512)
        #expect(AllocatedSize(bytes: 1 << 40).bytes == 1 << 40)
        #expect(AllocatedSize(bytes: 1 << 40 + 1).bytes == 1 << 40 + 1 << 20)
        #expect(AllocatedSize(bytes: .max).bytes > 1 << 50)
    }

    @Test func `each content has one mark, however many there are`() {
        var marks = ContentMarks(vacant: ContentMark())
        let digests = (0..<10_000).map { Digest(ofKey: "content \($0)") }
        for (index, digest) in digests.enumerated() {
            marks[digest].allocatedSize = AllocatedSize(code: UInt32(index))
            marks[digests[index / 2]].noteReference(sizeClass: 1)
        }
        #expect(marks.count == 10_000)
        #expect(digests.indices.allSatisfy { marks.value(of: digests[$0])?.allocatedSize.code == UInt32($0) })
        #expect(
            digests.indices.allSatisfy { marks.value(of: digests[$0])?.references == ($0 < 5000 ? 2 : 0) }
        )
        #expect(marks.value(of: Digest(ofKey: "other")) == nil)
    }

    @Test func `the fields of a mark are independent, and its reference count saturates`() {
        var mark = ContentMark()
        mark.noteReference(sizeClass: 3)
        mark.noteReference(sizeClass: 3)
        mark.presence = .unreadable
        #expect(
            mark.references == 2 && mark.sizeClass == 3 && mark.presence == .unreadable && mark.freed == nil
        )
        let areLast = [mark.noteRemoval(.freeSpace), mark.noteRemoval(.staleTemporary)]
        #expect(areLast == [false, true])
        #expect(mark.references == 0 && mark.sizeClass == 3 && mark.presence == .unreadable)
        #expect(mark.freed == .staleTemporary)
        for reason in RemovalReason.allCases {
            mark.noteReference(sizeClass: 3)
            #expect(mark.noteRemoval(reason) && mark.freed == reason)
        }
        for _ in 0...ContentMark.mostReferences { mark.noteReference(sizeClass: 0) }
        #expect(mark.references == ContentMark.mostReferences)
        for _ in 0...ContentMark.mostReferences where mark.noteRemoval(.size) { Issue.record("unreferenced") }
        #expect(mark.references > 0, "how many there are is not known")
    }

    @Test func `candidates are exactly the least recently used, even among equal times`() {
        var generator = SeededGenerator(seed: 2)
        for span in [1, 1000, Int64.max] {
            var candidates = SweepCandidates(kept: 700, capacity: 1000)
            let entries = (0..<5000).map {
                seen("key \($0)", "c", used: .random(in: 0...span, using: &generator))
            }
            for entry in entries { candidates.add(entry) }
            #expect(candidates.isCut && candidates.entries.count >= candidates.kept)
            #expect(candidates.entries.count < candidates.capacity)
            let order = candidates.inOrder().map { candidates.entries[Int($0)].key }
            #expect(order == entries.sorted { $0.order < $1.order }.prefix(order.count).map(\.key))
        }
    }

    @Test(arguments: [1, 1 << 20, 1 << 40, Int64.max])
    func `candidates are ordered by time, and by key if the times are equal`(span: Int64) {
        var generator = SeededGenerator(seed: 3)
        // Times of all magnitudes, so that truncation on either side is detected.
        var candidates = SweepCandidates(kept: 3000, capacity: 4000)
        let entries = (0..<3000).map { index in
            seen("key \(index)", "c", used: .random(in: -1...span, using: &generator) >> (index % 3))
        }
        for entry in entries { candidates.add(entry) }
        let plain = entries.indices.sorted { entries[$0].order < entries[$1].order }
        #expect(candidates.inOrder().map(Int.init) == plain)
    }

    private func seen(_ key: String, _ content: String, used: Int64 = 0) -> SeenEntry {
        SeenEntry(
            key: Digest(ofKey: key),
            content: Digest(ofKey: content),
            lastUse: Timestamp(nanoseconds: used),
            allocatedSize: AllocatedSize(bytes: 0),
            inode: 0,
            witness: 0
        )
    }

    private func state(_ entries: [SeenEntry]) -> SweepState {
        var state = SweepState()
        state.pass.candidates = SweepCandidates(wanted: 0)
        _ = state.note(entries.map { ($0, 0) })
        return state
    }

    private func status() -> FileStatus {
        FileStatus(stat())
    }

    @Test func `while an entry is unreadable, only objects of deleted entries are removed`() {
        var state = state([seen("kept", "K"), seen("deleted", "D")])
        state.note([Removal(state.pass.candidates.entries[1], .size)], [.deleted])
        state.pass.hasUnreadableEntries = true
        let unreferenced = ["K", "D", "orphan"].map { state.noteObject(Digest(ofKey: $0), status())?.digest }
        #expect(unreferenced == [nil, Digest(ofKey: "D"), nil])
        #expect(state.report.spared == 1)
    }

    @Test func `a shared object is removed after its last entry`() {
        var state = state([seen("a", "S"), seen("b", "S")])
        let object = state.noteObject(Digest(ofKey: "S"), status())
        #expect(object?.digest == nil)
        func note(_ place: UInt32, _ reason: RemovalReason, _ outcome: DeletionOutcome) {
            let entry = state.pass.candidates.entries[Int(place)]
            state.note([Removal(entry, reason, at: place)], [outcome])
        }
        note(0, .age, .deleted)
        note(1, .size, .spared)
        #expect(state.pass.freed.isEmpty)
        note(1, .size, .deleted)
        #expect(state.pass.freed == [1])
        #expect(state.unreferenced(at: 1).reason == .size)
    }

    @Test func `if two contents share a mark, neither is removed while either is referenced`() {
        // Both products are 0 for digests with these first and third words.
        let digests = [1, 2].map { (number: UInt8) in
            Digest(bytes: InlineArray { $0 % 16 < 8 ? 7 : number })
        }
        let seed = SIMD4<UInt64>(digests[0].rawWords[0], 3, digests[0].rawWords[2], 4)
        func entry(_ key: String, _ content: Digest) -> SeenEntry {
            var entry = seen(key, "")
            entry = SeenEntry(
                key: entry.key,
                content: content,
                lastUse: entry.lastUse,
                allocatedSize: entry.allocatedSize,
                inode: 0,
                witness: 0
            )
            return entry
        }
        var state = SweepState()
        state.pass.candidates = SweepCandidates(wanted: 0)
        state.pass.marks = ContentMarks(vacant: ContentMark(), seed: seed)
        let entries = [entry("a", digests[0]), entry("b", digests[1])]
        _ = state.note(entries[..<1].map { ($0, 0) })
        let orphans = digests.map { state.noteObject($0, status())?.digest }
        #expect(state.pass.marks.count == 1 && orphans == [nil, nil])

        _ = state.note(entries[1...].map { ($0, 0) })
        for place in [UInt32(0), 1] {
            #expect(state.pass.freed.isEmpty)
            let entry = state.pass.candidates.entries[Int(place)]
            state.note([Removal(entry, .size, at: place)], [.deleted])
        }
        #expect(state.pass.freed == [1], "the other object is left to the next sweep")
        #expect(state.unreferenced(at: 1).digest == digests[1])
    }

    // MARK: Dangling entries and excess

    @Test func `an unreadable object leaves no entry dangling`() {
        let entries = ["a", "b", "c"].map { seen($0, $0.uppercased()) }
        var state = state(entries)
        state.noteUnreadableObject(Digest(ofKey: "A"))
        state.pass.unreadableShards = [Digest(ofKey: "B").shard]
        #expect(state.dangling(entries.map { ($0, 0) }).map(\.digest) == [Digest(ofKey: "c")])
    }

    @Test func `orphans and entries removed for other reasons count towards the limits`() {
        var expired = seen("expired", "B")
        expired.verdict = .expired
        var state = state([seen("old", "A"), expired])
        var status = stat()
        status.st_blocks = 1
        var limits = CacheLimits()
        limits.maximumEntries = 1
        limits.maximumSize = .bytes(512)
        let objects = ["A", "B", "orphan"].map { state.noteObject(Digest(ofKey: $0), FileStatus(status)) }
        #expect(state.excess(over: limits, nil) == Excess(entries: 1, size: 1024))
        state.note([Removal(expired, .expired)], [.deleted])
        #expect(objects[0] == nil && objects[1] == nil)
        let freed = Removal(object: Digest(ofKey: "B"), AllocatedSize(bytes: 512), freed: .expired)
        state.note([objects[2], freed].compactMap { $0 }, [.deleted, .deleted])
        #expect(state.excess(over: limits, nil) == Excess())
        #expect(state.report.removed[.expired] == CollectionReport.Tally(count: 1, bytes: 512))
        #expect(state.report.removed[.orphan] == CollectionReport.Tally(count: 1, bytes: 512))
    }
}
