// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("The filter of keys, in every interleaving, with every crash", .takesTurns)
struct FilterModelTests {
    private func explore(_ mistake: FilterModel.Mistake?) -> (states: Int, trace: [String]?) {
        var space = StateSpace(of: FilterModel.Model(mistake: mistake))
        let found = space.visit { state, _ in state.isBroken ? true : nil }
        return (space.states.count, found?.trace)
    }

    @Test("an existing key is never reported as absent")
    func isSound() {
        let outcome = explore(nil)
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states > 1_000)
    }

    @Test("each mistake in the protocol is found", arguments: FilterModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: FilterModel.Mistake) {
        let outcome = explore(mistake)
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states) states")
    }
}
