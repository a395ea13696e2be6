// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("Rules for many values, in every interleaving, with every crash", .takesTurns)
struct InvalidationModelTests {
    @Test("bring nothing back that is gone, and lose nothing that came later")
    func isSound() {
        let outcome = InvalidationModel.explore(nil)
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states > 1_000_000, "\(outcome.states)")
    }

    @Test("lose nothing that is put after them, whoever else puts")
    func isSoundWithTwoWriters() {
        let outcome = InvalidationModel.explore(nil, writers: 2)
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states > 100_000, "\(outcome.states)")
    }

    @Test("need each part of their protocol", arguments: InvalidationModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: InvalidationModel.Mistake) {
        let outcome = InvalidationModel.explore(mistake, writers: mistake.writers)
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states) states")
    }
}
