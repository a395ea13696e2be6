// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("The replacement of the outbox, in every interleaving", .takesTurns)
struct OutboxModelTests {
    @Test("appended records are kept, and found by later readers")
    func isSound() {
        let model = OutboxModel.Model(mistake: nil)
        let outcome = model.explore()
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(
            outcome.states.contains { $0.named == 2 && !$0.files[2].isIncomplete && $0.returned == 3 },
            "it is replaced twice"
        )
        #expect(
            outcome.states.contains {
                $0.reader.step == .over && $0.reader.file == 1 && $0.reader.read.isIncomplete
            },
            "a reader reads both files"
        )
    }

    @Test("each mistake in the protocol is found", arguments: OutboxModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: OutboxModel.Mistake) {
        let model = OutboxModel.Model(mistake: mistake)
        let outcome = model.explore()
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states.count) states")
    }
}
