// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Models

@Suite("The generations of the control file, in every interleaving, with every crash", .takesTurns)
struct GenerationModelTests {
    private typealias Model = GenerationModel.Model

    /// A model and its minimum number of states; fewer would mean that it was not explored.
    struct Case: CustomTestStringConvertible {
        let model: GenerationModel.Model
        let leastStates: Int

        init(_ model: GenerationModel.Model, _ leastStates: Int) {
            self.model = model
            self.leastStates = leastStates
        }

        var testDescription: String { model.description }
    }

    /// Writers in the readers' processes and in others; the second key shares the word.
    static let cases: [Case] = [
        Case(.init(.put(in: 0), .put(in: 1), keepsAbsences: false), 120_000),
        Case(.init(.put(in: 0), .put(in: 0), readers: [0, 0]), 100_000),
        Case(.init(.put(in: 2), .put(in: 2), readers: [0, 0], keepsAbsences: false), 30_000),
        Case(.init(.put(in: 0), .remove(in: 1)), 150_000),
        Case(.init(.put(in: 0), .remove(in: 2), readers: [0, 0]), 100_000),
        Case(.init(.put(in: 0), .put(in: 2, .k2), readers: [0, 0]), 70_000),
        Case(.init(.put(in: 0), readers: [0, 0], setting: .replaced, collector: .none), 40_000),
        Case(.init(.put(in: 2), readers: [0], setting: .replaced), 20_000),
        Case(.init(.remove(in: 0), readers: [0], setting: .replaced), 8_000),
        Case(.init(.put(in: 0), .put(in: 2), readers: [0], setting: .made), 15_000),
        Case(.init(.put(in: 0), setting: .made), 10_000),
        Case(.init(.put(in: 2), setting: .made), 20_000),
    ]

    @Test("no read returns a forbidden value", arguments: cases)
    func isLinearizable(_ example: Case) {
        let outcome = GenerationModel.Outcome.explore(example.model)
        #expect(!outcome.isBroken, "\(outcome.description)")
        #expect(outcome.states >= example.leastStates)
    }

    static let mistakes: [GenerationModel.Model] = [
        .init(.put(in: 2), change: .hitWithoutCheck),
        .init(.put(in: 2), change: .wordAfterRecord),
        .init(.put(in: 2), change: .copyHeldDespiteWriter),
        .init(.put(in: 2), change: .absenceWordAfterRecord),
        .init(.put(in: 2), change: .absenceWithoutCheck),
        .init(.put(in: 2), change: .absenceHeldDespiteWriter),
        .init(.put(in: 0), setting: .made, change: .absenceHeldWhileForming),
        .init(.put(in: 0), setting: .made, change: .phaseAfterRecord),
        .init(.put(in: 0), setting: .made, change: .copyHeldWhileForming),
        .init(.put(in: 2), change: .endBeforePublishing),
        .init(.put(in: 2), change: .writerNotAdded),
        .init(.put(in: 2), change: .addedBeforeLocking),
        .init(.put(in: 2), .put(in: 2), collector: .sweeps, change: .unlockedBeforeEnd),
        .init(.put(in: 2), change: .takenOffBeforeRaising),
        .init(.put(in: 2), .put(in: 2), collector: .none, change: .endNotAtomic),
        .init(.put(in: 0), .put(in: 2), change: .ownValueUnchecked),
        .init(.put(in: 0), .put(in: 2), change: .ownValueCheckedAtBeginning),
        .init(.put(in: 0), .put(in: 2), change: .ownValueCheckedAtEnd),
        .init(.put(in: 0), .put(in: 2), readers: [0], setting: .made, change: .ownValueHeldWhileForming),
        .init(.remove(in: 2), change: .versionLeftIfNothingRemoved),
        .init(.put(in: 2), change: .sweepWithoutRaising),
        .init(.put(in: 2), change: .sweepWithoutStripe),
        .init(.put(in: 0), setting: .made, change: .readyWithoutBarrier),
        .init(.put(in: 0), setting: .made, change: .barrierNotRepeated),
        .init(.put(in: 2), readers: [0], setting: .replaced, change: .supersededAfterRename),
        .init(.put(in: 2), readers: [0], setting: .replaced, change: .neverSuperseded),
        .init(.put(in: 0), setting: .made, change: .lookedBeforeLocking),
        .init(.put(in: 2), setting: .made, change: .publishedWithoutLook),
        .init(.put(in: 2), readers: [0], setting: .replaced, change: .wordsStartOver),
        .init(.put(in: 2), readers: [0], setting: .replaced, change: .wordsStartOverInClearedTier),
        .init(.put(in: 2), readers: [0], setting: .replaced, change: .wordsClosed),
    ]

    @Test("each mistake in the protocol is found", arguments: mistakes)
    func mistakeIsFound(_ model: GenerationModel.Model) {
        let outcome = GenerationModel.Outcome.explore(model)
        #expect(outcome.isBroken, "\(model.change.map { "\($0)" } ?? "") in \(outcome.states) states")
        #expect(outcome.trace.count > 3)
    }

    static let variations: [GenerationModel.Model] = [
        .init(.put(in: 2), .put(in: 2), readers: [0], change: .raisedBeforeTakingOff),
        .init(.put(in: 0), .put(in: 2), readers: [0], change: .raisedAtBeginning),
        .init(.put(in: 0), readers: [0, 0], change: .reclaimRaises),
        .init(.put(in: 2), readers: [0], setting: .replaced, change: .wordsClosedAndRaised),
        .init(.put(in: 2), readers: [0], setting: .replaced, change: .phaseAfterWord),
        .init(.put(in: 0), setting: .made, change: .phaseAfterWord),
    ]

    @Test("each superfluous step is shown to make no difference", arguments: variations)
    func variationHolds(_ model: GenerationModel.Model) {
        let outcome = GenerationModel.Outcome.explore(model)
        #expect(!outcome.isBroken, "\(outcome.description)")
        #expect(outcome.states > 3_000)
    }
}
