// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("The filter of keys, in every interleaving, with every crash", .takesTurns)
struct FilterModelTests {
    @Test("an existing key is never reported as absent")
    func isSound() {
        let outcome = FilterModel.Model(mistake: nil).explore()
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states.count > 1_000)
    }

    @Test("each mistake in the protocol is found", arguments: FilterModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: FilterModel.Mistake) {
        let outcome = FilterModel.Model(mistake: mistake).explore()
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states.count) states")
    }
}
