// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("The outbox while it is replaced, in every interleaving", .takesTurns)
struct OutboxModelTests {
    @Test("what was appended is kept, and found by who looks afterwards")
    func isSound() {
        let model = OutboxModel.Model(mistake: nil)
        var space = StateSpace(of: model)
        let found = space.visit { state, _ in model.isBroken(state) ? true : nil }
        #expect(found == nil, "\(found?.trace.joined(separator: "\n") ?? "")")
        #expect(
            space.states.contains { $0.named == 2 && !$0.files[2].isIncomplete && $0.returned == 3 },
            "it is replaced twice"
        )
        #expect(
            space.states.contains {
                $0.reader.step == .over && $0.reader.file == 1 && $0.reader.read.isIncomplete
            },
            "a reader reads both files"
        )
    }

    @Test("needs each part of its protocol", arguments: OutboxModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: OutboxModel.Mistake) {
        let model = OutboxModel.Model(mistake: mistake)
        var space = StateSpace(of: model)
        let found = space.visit { state, _ in model.isBroken(state) ? true : nil }
        #expect(found != nil, "\(mistake) in \(space.states.count) states")
    }
}
