// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("A bucket of the index of packs, in every interleaving, with every crash", .takesTurns)
struct BucketModelTests {
    /// Programs that run at the same time, the words of the bucket at first, and how often other keys change a word.
    struct Case: Sendable, CustomTestStringConvertible {
        let programs: [[BucketModel.Call]]
        var first: [BucketModel.Word] = [BucketModel.initial, BucketModel.empty, BucketModel.empty]
        var neighborChanges: UInt8 = 2

        var testDescription: String { "\(programs) from \(first)" }
    }

    static let empty: [BucketModel.Word] = [BucketModel.empty, BucketModel.empty, BucketModel.empty]
    static let behindNeighbor: [BucketModel.Word] = [
        BucketModel.other, BucketModel.empty, BucketModel.initial,
    ]
    static let neighborOnly: [BucketModel.Word] = [BucketModel.other, BucketModel.empty, BucketModel.empty]
    static let cases = [
        Case(programs: [[.put], [.remove], [.get]]),
        Case(programs: [[.put], [.evict], [.get]]),
        Case(programs: [[.put], [.move], [.get]]),
        Case(programs: [[.remove], [.move], [.get]]),
        Case(programs: [[.put], [.displace], [.get]]),
        Case(programs: [[.put], [.put], [.get]], first: empty),
        Case(programs: [[.put], [.move], [.remove], [.get]], neighborChanges: 1),
        Case(programs: [[.put], [.remove], [.put], [.get]], first: behindNeighbor, neighborChanges: 0),
        Case(programs: [[.put], [.evict], [.put], [.get]], first: behindNeighbor, neighborChanges: 0),
        Case(programs: [[.put], [.put, .remove], [.get, .get]], first: neighborOnly, neighborChanges: 1),
    ]

    private func explore(_ example: Case, _ mistake: BucketModel.Mistake?) -> Exploration<BucketModel.State> {
        BucketModel.Model(
            programs: example.programs,
            first: example.first,
            mistake: mistake,
            neighborChanges: example.neighborChanges
        )
        .explore()
    }

    @Test("the history of one key is linearizable", arguments: cases)
    func isLinearizable(_ example: Case) {
        let outcome = explore(example, nil)
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states.count > 500)
    }

    @Test("each mistake in the protocol is found", arguments: sample(2, of: BucketModel.Mistake.allCases))
    func mistakeIsFound(_ mistake: BucketModel.Mistake) {
        let isFound = Self.cases.contains { explore($0, mistake).trace != nil }
        #expect(isFound, "\(mistake)")
    }
}
