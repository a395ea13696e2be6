// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("A key with a value in a pack or in a file, in every interleaving, with every crash", .takesTurns)
struct HomesModelTests {
    /// Programs that run at the same time, and the values at first.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let programs: [[HomesModel.Call]]
        var packed: UInt8 = 0
        var filed: UInt8 = 0
    }

    /// Small ones first, because a mistake is looked for in one after the other.
    static let cases = [
        Case(testDescription: "memory, put", programs: [[.packPut(1)], [.load, .hit, .hit]], packed: 5),
        Case(testDescription: "memory, remove", programs: [[.remove], [.load, .hit, .hit]], packed: 5),
        Case(
            testDescription: "memory of a file, file put",
            programs: [[.filePut(2)], [.load, .hit, .hit]],
            filed: 5
        ),
        Case(
            testDescription: "memory of a file, put",
            programs: [[.packPut(1)], [.load, .hit], [.get]],
            filed: 5
        ),
        Case(
            testDescription: "move, file put",
            programs: [[.filePut(2)], [.get, .get], [.move]],
            packed: 5
        ),
        Case(testDescription: "update, put", programs: [[.update], [.packPut(1)], [.get, .get]], packed: 5),
        Case(testDescription: "two updates", programs: [[.update], [.update], [.get, .get]], packed: 5),
        Case(testDescription: "remove", programs: [[.packPut(1), .remove], [.get, .get]], filed: 5),
        Case(
            testDescription: "lost index",
            programs: [[.packPut(1), .get], [.get, .get], [.lose]],
            filed: 5
        ),
        Case(testDescription: "gets", programs: [[.packPut(1)], [.get, .get], [.evict]], filed: 5),
        Case(
            testDescription: "own memory",
            programs: [[.packPut(1)], [.filePut(2), .hit], [.get]],
            packed: 5
        ),
        Case(
            testDescription: "unpack, memory",
            programs: [[.unpack], [.load, .hit], [.packPut(1)]],
            packed: 5
        ),
        Case(testDescription: "unpack, remove", programs: [[.unpack], [.remove, .get], [.get]], packed: 5),
        Case(testDescription: "unpack", programs: [[.packPut(1)], [.unpack, .get], [.get]], packed: 5),
        Case(
            testDescription: "memory, both puts",
            programs: [[.filePut(2)], [.packPut(1)], [.load, .hit]],
            packed: 5
        ),
        Case(
            testDescription: "memory of a file, put, eviction",
            programs: [[.packPut(1)], [.load, .hit, .hit], [.evict]],
            filed: 5
        ),
        Case(
            testDescription: "update, file put",
            programs: [[.update], [.filePut(2)], [.get, .get]],
            filed: 5
        ),
        Case(
            testDescription: "file put",
            programs: [[.packPut(1)], [.filePut(2)], [.get, .get]],
            packed: 5
        ),
        Case(
            testDescription: "two file puts",
            programs: [[.filePut(2)], [.filePut(3)], [.packPut(1), .get]]
        ),
        Case(
            testDescription: "over a file",
            programs: [[.packPut(1)], [.filePut(2)], [.get, .get]],
            filed: 5
        ),
        Case(
            testDescription: "remove, eviction",
            programs: [[.packPut(1)], [.remove, .get], [.evict, .get]],
            filed: 5
        ),
        Case(
            testDescription: "move, remove",
            programs: [[.packPut(1)], [.remove, .get], [.move, .get]],
            packed: 5
        ),
        Case(
            testDescription: "over a word, memory",
            programs: [[.packPut(1)], [.filePut(2), .load, .hit], [.get]],
            packed: 5
        ),
        Case(
            testDescription: "file put, eviction",
            programs: [[.packPut(1)], [.filePut(2), .get], [.evict, .get]],
            filed: 5
        ),
        Case(
            testDescription: "over a word, remove",
            programs: [[.packPut(1)], [.remove, .get], [.get, .get]],
            packed: 5
        ),
        Case(
            testDescription: "over a word, eviction",
            programs: [[.packPut(1)], [.evict, .get], [.get, .get]],
            packed: 5
        ),
        Case(
            testDescription: "memory of a file, put, file put",
            programs: [[.packPut(1), .filePut(2)], [.load, .hit], [.get]],
            filed: 5
        ),
    ]

    private func explore(_ example: Case, _ mistake: HomesModel.Mistake?) -> Exploration<HomesModel.State> {
        HomesModel.Model(
            programs: example.programs,
            packed: example.packed,
            filed: example.filed,
            mistake: mistake
        )
        .explore()
    }

    @Test("the history of one key is linearizable", arguments: sample(8, of: cases))
    func isLinearizable(_ example: Case) {
        let outcome = explore(example, nil)
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states.count > 50)
    }

    @Test("each mistake in the protocol is found", arguments: sample(4, of: HomesModel.Mistake.allCases))
    func mistakeIsFound(_ mistake: HomesModel.Mistake) {
        let isFound = Self.cases.contains { explore($0, mistake).trace != nil }
        #expect(isFound, "\(mistake)")
    }
}
