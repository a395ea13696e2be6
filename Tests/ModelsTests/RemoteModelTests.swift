// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("Remote values beside local writers, in every interleaving", .takesTurns)
struct RemoteModelTests {
    @Test("no value older than a returned one is returned")
    func isSound() {
        let model = RemoteModel.Model(mistake: nil)
        let outcome = model.explore()
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states.count > 3_000)
        #expect(
            outcome.states.contains {
                $0.reader.step == .over && $0.reader.answer == .old && $0.disk == .old
            },
            "what the store has is put on disk"
        )
        #expect(
            outcome.states.contains { $0.store == .gone && $0.noted == 0 && $0.writers[1] == .over },
            "the store is told of the removal"
        )
        #expect(
            outcome.states.contains {
                $0.hasGivenUp && $0.late == nil && $0.store == .gone && $0.noted == 0 && $0.doubt == .none
            },
            "a request without an answer is followed by another"
        )
    }

    @Test("each mistake in the protocol is found", arguments: RemoteModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: RemoteModel.Mistake) {
        let model = RemoteModel.Model(mistake: mistake)
        let outcome = model.explore()
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states.count) states")
    }
}
