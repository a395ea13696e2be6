// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("A put in the background beside other writers, in every interleaving, with every crash", .takesTurns)
struct WriteBehindModelTests {
    @Test("the process never returns its value after another one has replaced it")
    func isSound() {
        let model = WriteBehindModel.Model(mistake: nil)
        let outcome = model.explore()
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states.count > 5_000)
        #expect(
            outcome.states.contains { $0.own == .end && model.isGivenOut(in: $0) },
            "while it is being written"
        )
        #expect(
            outcome.states.contains { $0.own == .noteEnd && model.isGivenOut(in: $0) },
            "once it is written"
        )
    }

    @Test("each mistake in the protocol is found", arguments: WriteBehindModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: WriteBehindModel.Mistake) {
        let model = WriteBehindModel.Model(mistake: mistake)
        let outcome = model.explore()
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states.count) states")
    }
}
