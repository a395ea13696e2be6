// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("A bucket of the index of packs, in every interleaving, with every crash", .takesTurns)
struct BucketModelTests {
    /// Programs that run at the same time, and the words of the bucket at first.
    struct Case: Sendable, CustomTestStringConvertible {
        let programs: [[BucketModel.Call]]
        var first: [BucketModel.Word] = [BucketModel.initial, BucketModel.empty, BucketModel.empty]

        var testDescription: String { "\(programs) from \(first)" }
    }

    static let empty: [BucketModel.Word] = [BucketModel.empty, BucketModel.empty, BucketModel.empty]
    /// The first record is hidden by another one, or hides it, as after two puts of a new key.
    static let hidden: [BucketModel.Word] = [BucketModel.empty, BucketModel.earlier, BucketModel.initial]
    static let hiding: [BucketModel.Word] = [BucketModel.initial, BucketModel.earlier, BucketModel.empty]
    static let cases = [
        Case(programs: [[.put], [.put], [.get]], first: empty),
        Case(programs: [[.put], [.remove], [.get]]),
        Case(programs: [[.put], [.evict], [.get]]),
        Case(programs: [[.put], [.move], [.get]]),
        Case(programs: [[.put], [.remove], [.get]], first: hidden),
        Case(programs: [[.put], [.displace], [.get]]),
        Case(programs: [[.put], [.evict], [.get]], first: hidden),
        Case(programs: [[.put], [.move], [.get]], first: hidden),
        Case(programs: [[.remove], [.get, .get]], first: hidden),
        Case(programs: [[.displace], [.get, .get]], first: hidden),
        Case(programs: [[.put], [.evict], [.get, .get]], first: hiding),
    ]

    private func explore(_ example: Case, _ mistake: BucketModel.Mistake?) -> (states: Int, trace: [String]?)
    {
        let model = BucketModel.Model(programs: example.programs, first: example.first, mistake: mistake)
        var space = StateSpace(of: model)
        let found = space.visit { state, _ in state.isBroken ? true : nil }
        return (space.states.count, found?.trace)
    }

    @Test("the history of one key is linearizable", arguments: cases)
    func isLinearizable(_ example: Case) {
        let outcome = explore(example, nil)
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states > 500)
    }

    @Test("each mistake in the protocol is found", arguments: BucketModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: BucketModel.Mistake) {
        let isFound = Self.cases.contains { explore($0, mistake).trace != nil }
        #expect(isFound, "\(mistake)")
    }
}
