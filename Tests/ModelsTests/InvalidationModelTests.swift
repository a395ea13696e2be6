// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("Rules for many values, in every interleaving, with every crash", .takesTurns)
struct InvalidationModelTests {
    @Test("removed values stay removed, and later ones are kept")
    func isSound() {
        let outcome = InvalidationModel.Model(mistake: nil, writers: 1).explore()
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states.count > 1_000_000, "\(outcome.states.count)")
    }

    @Test("values put after a rule are kept, whatever others put")
    func isSoundWithTwoWriters() {
        let outcome = InvalidationModel.Model(mistake: nil, writers: 2).explore()
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states.count > 100_000, "\(outcome.states.count)")
    }

    @Test(
        "each mistake in the protocol is found",
        arguments: sample(3, of: InvalidationModel.Mistake.allCases)
    )
    func mistakeIsFound(_ mistake: InvalidationModel.Mistake) {
        let outcome = InvalidationModel.Model(mistake: mistake, writers: mistake.writers).explore()
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states.count) states")
    }
}
