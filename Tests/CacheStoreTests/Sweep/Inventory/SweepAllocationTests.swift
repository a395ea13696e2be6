// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import CacheStore
@testable import Platform

@Suite(.takesTurns) struct SweepAllocationTests {
    private let block = AllocatedSize(bytes: 4096)

    @Test func `lengths up to four blocks, including inline ones, have a size class`() {
        let allocation = SweepAllocation(blockSize: 4096)
        let lengths = [0, 1, 60, 61, 256, 257, 1024, 1025, 4096, 4097, 8192, 16384, 16385, .max]
        #expect(
            lengths.map { allocation.classNumber(ofLength: $0) } == [
                0, 5, 5, 6, 6, 7, 7, 1, 1, 2, 2, 4, 0, 0,
            ]
        )
        let none = SweepAllocation(blockSize: nil)
        #expect(lengths.allSatisfy { none.classNumber(ofLength: $0) == SweepAllocation.unknownClass })
    }

    @Test func `one file shows the allocation of its class, and one in 32 is still checked`() {
        var allocation = SweepAllocation(blockSize: 4096)
        let unknown = allocation.size(ofClass: 1)
        allocation.note(block, ofClass: 1)
        let other = allocation.size(ofClass: 2)
        #expect(unknown == nil && other == nil)
        let known = (0..<320).map { _ in allocation.size(ofClass: 1) }
        #expect(known.count { $0 == nil } == 10)
        #expect(known.allSatisfy { $0 == nil || $0 == block })
    }

    @Test func `all files of a class are checked once two differ`() {
        var allocation = SweepAllocation(blockSize: 4096)
        for size in [block, AllocatedSize(bytes: 0), block, block] { allocation.note(size, ofClass: 1) }
        allocation.note(block, ofClass: SweepAllocation.unknownClass)
        let known = (0..<100).compactMap { _ in allocation.size(ofClass: 1) }
        let unknown = allocation.size(ofClass: SweepAllocation.unknownClass)
        #expect(known.isEmpty && unknown == nil)
    }

    // MARK: Sweeps

    private func value(_ index: Int, length: Int) -> String {
        let text = "value \(index) "
        return text + String(repeating: "x", count: length - text.utf8.count)
    }

    private func takenOnDisk(_ fixture: StoreFixture) throws -> Int64 {
        try fixture.objects.reduce(0) {
            try $0 + FileStatus.of(fixture.path + "/objects/" + $1).allocatedSize
        }
    }

    @Test(arguments: [[4096], [50, 100, 1024, 1025, 4095, 4097, 12_288, 16_384, 16_385, 100_000]])
    func `the reported size of objects is the one that the file system reports`(lengths: [Int]) throws {
        let fixture = try StoreFixture()
        for index in 0..<200 {
            try fixture.put(value(index, length: lengths[index % lengths.count]), "key \(index)")
        }
        let report = try fixture.sweep()
        #expect(report.objects.count == 200)
        #expect(try report.objects.bytes == takenOnDisk(fixture))
        let half = try fixture.sweep { $0.limits.maximumEntries = 100 }
        #expect(half.removed[.entries]?.count == 100)
        #expect(try half.objects.bytes == takenOnDisk(fixture))
        #expect(try fixture.store.control.usage?.bytes == half.entries.bytes + takenOnDisk(fixture))
    }

    @Test func `links and missing files do not count as objects`() throws {
        let fixture = try StoreFixture()
        for index in 0..<200 { try fixture.put(value(index, length: 4096), "key \(index)") }
        for index in 0..<20 {
            let path = fixture.objectPath(value(index, length: 4096))
            try FileManager.default.removeItem(atPath: path)
            if index % 2 == 0 {
                try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/nowhere")
            }
        }
        let report = try fixture.sweep()
        #expect(report.removed[.dangling]?.count == 20)
        #expect(report.objects.count == 180)
    }

    @Test func `an object is checked if its entries disagree on the length, or if it has none`() {
        var state = SweepState(blockSize: 4096)
        func sighting(_ key: String, _ content: String, length: Int) -> SweepState.Sighting {
            let entry = SeenEntry(
                key: Digest(ofKey: key),
                content: Digest(ofKey: content),
                lastUse: .distantPast,
                allocatedSize: AllocatedSize(bytes: 0),
                inode: 0,
                witness: 0
            )
            return (entry, length)
        }
        func file(_ content: String, isRegular: Bool = true) -> Store.File {
            Store.File(digest: Digest(ofKey: content), inode: 7, isRegular: isRegular)
        }
        _ = state.note([
            sighting("a", "A", length: 4096), sighting("b", "B", length: 4000),
            sighting("c", "C", length: 4096), sighting("d", "C", length: 5000),
            sighting("e", "C", length: 4096),
        ])
        func isKnown(_ file: Store.File) -> Bool {
            var unreferenced: [Removal] = []
            return state.noteListedObject(file, &unreferenced)
        }
        let first = isKnown(file("A"))
        #expect(!first, "nothing is known yet")
        _ = state.noteObject(Digest(ofKey: "A"), FileStatus(stat()))
        let files = [file("B", isRegular: false), file("B"), file("C"), file("orphan")]
        let areKnown = files.map { isKnown($0) }
        #expect(areKnown == [false, true, false, false])
        #expect(state.report.objects.count == 2)
    }
}
