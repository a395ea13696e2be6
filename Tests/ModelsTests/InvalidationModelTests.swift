// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("Rules for many values, in every interleaving, with every crash", .takesTurns)
struct InvalidationModelTests {
    private func explore(_ mistake: InvalidationModel.Mistake?) -> (states: Int, trace: [String]?) {
        var space = StateSpace(of: InvalidationModel.Model(mistake: mistake))
        let found = space.visit { state, _ in state.isBroken ? true : nil }
        return (space.states.count, found?.trace)
    }

    @Test("bring nothing back that is gone, and lose nothing that came later")
    func isSound() {
        let outcome = explore(nil)
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states > 1_000)
    }

    @Test("need each part of their protocol", arguments: InvalidationModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: InvalidationModel.Mistake) {
        let outcome = explore(mistake)
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states) states")
    }
}
