// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CacheStore
@testable import Platform

@Suite struct SweepStateTests {
    @Test func `a seen entry takes 64 bytes, and a content 48`() {
        #expect(MemoryLayout<SeenEntry>.stride == 64)
        #expect(MemoryLayout<SeenContent>.stride == 48)
    }

    @Test(arguments: [0, 512, 4096, 1 << 40 - 512] as [Int64])
    func `sizes up to 1 TiB are kept to the block`(size: Int64) {
        #expect(AllocatedSize(bytes: size).bytes == size)
    }

    @Test func `what no size can be does not trap, and larger sizes are rounded up`() {
        #expect(AllocatedSize(bytes: -1).bytes == 0)
        #expect(AllocatedSize(bytes: 1).bytes == 512)
        #expect(AllocatedSize(bytes: 1 << 40).bytes == 1 << 40)
        #expect(AllocatedSize(bytes: 1 << 40 + 1).bytes == 1 << 40 + 1 << 20)
        #expect(AllocatedSize(bytes: .max).bytes > 1 << 50)
    }

    @Test func `each content is held once, in whatever number`() {
        var contents = SweepContents()
        let digests = (0..<10_000).map { Digest(ofKey: "content \($0)") }
        for (index, digest) in digests.enumerated() {
            #expect(contents.place(of: digest) == UInt32(index))
            if index % 7 == 0 { #expect(contents.place(of: digests[index / 2]) == UInt32(index / 2)) }
        }
        #expect(contents.count == 10_000)
        #expect(digests.indices.allSatisfy { contents.place(of: digests[$0]) == UInt32($0) })
        #expect(digests.indices.allSatisfy { contents[UInt32($0)].digest == digests[$0] })
    }

    @Test func `a list holds what was added, in pieces that do not move`() {
        var list = Segments<Int>()
        for number in 0..<10_000 { list.append(number) }
        list[5000] = -1
        #expect(list.count == 10_000)
        #expect((0..<10_000).allSatisfy { list[$0] == ($0 == 5000 ? -1 : $0) })
    }

    private func sighting(_ key: String, _ content: String) -> SweepState.Sighting {
        SweepState.Sighting(
            entry: SeenEntry(
                key: Digest(ofKey: key),
                lastUse: .distantPast,
                verdict: .none,
                witness: 0,
                allocatedSize: AllocatedSize(bytes: 0),
                inode: 0
            ),
            content: Digest(ofKey: content)
        )
    }

    private func foundObjects(_ names: String..., in state: inout SweepState) {
        for name in names {
            let place = state.contents.place(of: Digest(ofKey: name))
            state.contents[place].presence = .present
        }
    }

    @Test func `while an entry can't be read, only objects go that were named by deleted ones`() {
        var state = SweepState()
        _ = state.note([sighting("kept", "K"), sighting("deleted", "D")])
        foundObjects("K", "D", "orphan", in: &state)
        state.note(SweepState.Removal(entry: state.entries[1], reason: .size), .deleted)
        state.hasUnreadableEntries = true
        let places = state.takeUnreferenced(SweepRequest())
        #expect(places.map { state.contents[$0].digest } == [Digest(ofKey: "D")])
        #expect(state.report.spared == 1)
        #expect(state.takeUnreferenced(SweepRequest()).isEmpty, "each is given out once")
    }

    @Test func `an object that several entries name goes after the last of them`() {
        var state = SweepState()
        _ = state.note([sighting("a", "S"), sighting("b", "S")])
        foundObjects("S", in: &state)
        state.note(SweepState.Removal(entry: state.entries[0], reason: .age), .deleted)
        state.note(SweepState.Removal(entry: state.entries[1], reason: .size), .spared)
        #expect(state.takeUnreferenced(SweepRequest()).isEmpty)
        state.note(SweepState.Removal(entry: state.entries[1], reason: .size), .deleted)
        let places = state.takeUnreferenced(SweepRequest())
        #expect(places.map { state.contents[$0].freed } == [.size])
    }
}
