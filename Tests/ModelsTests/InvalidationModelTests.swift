// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("Rules for many values, in every interleaving, with every crash", .takesTurns)
struct InvalidationModelTests {
    @Test("removed values stay removed, and later ones are kept")
    func isSound() {
        let outcome = InvalidationModel.explore(nil)
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states > 1_000_000, "\(outcome.states)")
    }

    @Test("values put after a rule are kept, whatever others put")
    func isSoundWithTwoWriters() {
        let outcome = InvalidationModel.explore(nil, writers: 2)
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states > 100_000, "\(outcome.states)")
    }

    @Test("each mistake in the protocol is found", arguments: InvalidationModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: InvalidationModel.Mistake) {
        let outcome = InvalidationModel.explore(mistake, writers: mistake.writers)
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states) states")
    }
}
