// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Models

extension ProtocolModel.Model {
    /// The minimum number of states; fewer would mean that the exploration is broken.
    var leastStates: Int {
        switch (first, second) {
        case (.put, .put): 40_000
        case (.put, _), (_, .put): 15_000
        default: 3_500
        }
    }
}

@Suite("The lock protocol, in every interleaving, with every crash", .takesTurns)
struct ProtocolModelTests {
    private typealias Model = ProtocolModel.Model
    private typealias Program = ProtocolModel.Program

    /// A mistake, two writers that expose it, and the property that it breaks.
    struct Mistake: CustomTestStringConvertible {
        let change: ProtocolModel.Change
        let breaks: ProtocolModel.Property
        var first = ProtocolModel.Program.put(.k1, .a)
        var second = ProtocolModel.Program.remove(.k1)
        var threads: UInt8 = 1

        var testDescription: String { "\(change) breaks \(breaks)" }
    }

    /// Each pair of programs with one stripe of each kind, and with separate stripes if contents or keys differ.
    static let models: [ProtocolModel.Model] = {
        let programs: [Program] = [
            .put(.k1, .a), .put(.k1, .b), .put(.k2, .a), .remove(.k1), .setExpiration(.k1),
        ]
        let pairs = programs.indices.flatMap { index in
            programs[index...].map { Model(first: programs[index], second: $0) }
        }
        let mixed = pairs.filter { $0.first.key != $0.second.key || $0.first.content != $0.second.content }
        return pairs + mixed.map { Model(first: $0.first, second: $0.second, separateStripes: true) }
    }()

    /// Checks the protocol as designed, with a listing that may miss names that are replaced during it.
    @Test(
        "objects, records and order are kept, nothing leaks, and no process waits forever",
        arguments: models
    )
    func protocolHolds(_ model: ProtocolModel.Model) {
        let outcome = ProtocolModel.Explorer.explore(model)
        #expect(outcome.violation == nil, "\(outcome.description)")
        #expect(outcome.states >= model.leastStates)
        #expect(outcome.ends >= 75)
    }

    static let guesses: [ProtocolModel.Model] = {
        let others: [Program] = [.put(.k1, .a), .put(.k1, .b), .put(.k2, .a), .remove(.k1)]
        return others.flatMap { other in
            [UInt8(1), 3].map { Model(first: .put(.k1, .a), second: other, guessing: $0) }
        }
    }()

    @Test("the protocol holds for a put that creates object and entry without a lookup", arguments: guesses)
    func guessHolds(_ model: ProtocolModel.Model) {
        let outcome = ProtocolModel.Explorer.explore(model)
        #expect(outcome.violation == nil, "\(outcome.description)")
        #expect(outcome.states >= model.leastStates)
    }

    static let mistakes: [Mistake] = [
        Mistake(change: .withoutBarrier, breaks: .returnedPutKeepsObject),
        Mistake(change: .stampAfterBarrier, breaks: .returnedPutKeepsObject),
        Mistake(change: .sweepOfSkippedStripe, breaks: .returnedPutKeepsObject),
        Mistake(change: .putWithoutTouch, breaks: .returnedPutKeepsObject),
        Mistake(change: .putTrustsLook, breaks: .returnedPutKeepsObject),
        Mistake(change: .objectUnlockedBeforePublishing, breaks: .returnedPutKeepsObject),
        Mistake(change: .deletionWithoutSecondLook, breaks: .returnedPutKeepsObject),
        Mistake(change: .stampIncluded, breaks: .returnedPutKeepsObject),
        Mistake(change: .skippedEntryUnmarked, breaks: .returnedPutKeepsObject),
        Mistake(change: .deletionWithoutCheck, breaks: .returnedCallKeepsRecord),
        Mistake(change: .putWithoutEntryLock, breaks: .returnedCallKeepsRecord),
        Mistake(
            change: .expirationWithoutTouch,
            breaks: .returnedPutKeepsObject,
            second: .setExpiration(.k1)
        ),
        Mistake(
            change: .expirationWithoutCompare,
            breaks: .returnedCallKeepsRecord,
            second: .setExpiration(.k1)
        ),
        Mistake(change: .stampWithoutWaiting, breaks: .gcLeavesNothing),
        Mistake(
            change: .entriesNotAwaited,
            breaks: .returnedPutKeepsObject,
            first: .put(.k2, .a),
            threads: 2
        ),
        Mistake(
            change: .deletionsNotAwaited,
            breaks: .returnedPutKeepsObject,
            first: .put(.k2, .a),
            threads: 2
        ),
        Mistake(change: .marksNotShared, breaks: .returnedPutKeepsObject, first: .put(.k2, .a), threads: 2),
        Mistake(
            change: .objectsListedFirstWithoutLook,
            breaks: .returnedCallKeepsRecord,
            second: .remove(.k2),
            threads: 2
        ),
    ]

    /// Gc by two threads, in every order of reading; all pairs if long runs are requested (ten seconds).
    static let crewModels: [ProtocolModel.Model] = {
        let chosen =
            isSoak
            ? models
            : [
                Model(first: .put(.k1, .a), second: .put(.k2, .a)),
                Model(first: .put(.k2, .a), second: .remove(.k1), separateStripes: true),
                Model(first: .remove(.k1), second: .setExpiration(.k1)),
            ]
        return chosen.map { model in
            var model = model
            model.threads = 2
            return model
        }
    }()

    @Test("the protocol holds for a collection by two threads, in any order", arguments: crewModels)
    func crewHolds(_ model: ProtocolModel.Model) {
        let outcome = ProtocolModel.Explorer.explore(model)
        #expect(outcome.violation == nil, "\(outcome.description)")
        #expect(outcome.states >= 2 * model.leastStates)
    }

    @Test("entries and objects need no order if dangling ones are checked again")
    func objectsMayBeListedFirst() {
        let model = Model(first: .put(.k1, .a), second: .remove(.k2), change: .objectsListedFirst, threads: 2)
        let outcome = ProtocolModel.Explorer.explore(model)
        #expect(outcome.violation == nil, "\(outcome.description)")
        #expect(outcome.states >= 2 * model.leastStates)
    }

    @Test("each missing safeguard is found", arguments: mistakes)
    func mistakeIsFound(_ mistake: Mistake) {
        let model = Model(
            first: mistake.first,
            second: mistake.second,
            change: mistake.change,
            threads: mistake.threads
        )
        let outcome = ProtocolModel.Explorer.explore(model, checking: [mistake.breaks])
        #expect(outcome.violation == mistake.breaks, "\(outcome.description)")
        #expect(outcome.trace.count > 3)
    }

    @Test("the protocol holds if the collection waits for each lock without a limit")
    func patientCollector() {
        let model = Model(first: .put(.k1, .a), second: .setExpiration(.k1), skipsHeldStripes: false)
        let outcome = ProtocolModel.Explorer.explore(model)
        #expect(outcome.violation == nil, "\(outcome.description)")
        #expect(outcome.states >= model.leastStates)
    }

    @Test("the protocol holds for a second pass after one that ended or died at any step")
    func secondPass() {
        let model = Model(first: .put(.k1, .a), second: .remove(.k1), passes: 2)
        let outcome = ProtocolModel.Explorer.explore(model)
        #expect(outcome.violation == nil, "\(outcome.description)")
        #expect(outcome.states >= 2 * model.leastStates)
    }

    @Test("setting the clock back during a pass breaks the protocol")
    func clockSetBack() {
        let model = Model(first: .put(.k1, .a), second: .remove(.k1), clockMayBeSetBack: true)
        let outcome = ProtocolModel.Explorer.explore(model, checking: [.returnedPutKeepsObject])
        #expect(outcome.violation == .returnedPutKeepsObject, "\(outcome.description)")
    }

    @Test("the protocol holds if the collection notices a set clock and then deletes no object")
    func clockSetBackNoticed() {
        let model = Model(
            first: .put(.k1, .a),
            second: .remove(.k1),
            clockMayBeSetBack: true,
            noticesClockSet: true
        )
        let outcome = ProtocolModel.Explorer.explore(model)
        #expect(outcome.violation == nil, "\(outcome.description)")
        #expect(outcome.states >= 2 * model.leastStates)
    }

    @Test("every run ends", arguments: [Program.remove(.k1), .setExpiration(.k1)])
    func runsEnd(_ second: ProtocolModel.Program) {
        #expect(ProtocolModel.Explorer.everyRunEnds(Model(first: .put(.k1, .a), second: second)))
    }

    @Test("the exploration reaches every step of every program")
    func everyStepIsTaken() {
        var taken = ProtocolModel.Explorer.Steps()
        var models = [Program.put(.k1, .a), .setExpiration(.k1)].map {
            Model(first: .remove(.k1), second: $0)
        }
        models.append(Model(first: .remove(.k1), second: .remove(.k1), threads: 2))
        for model in models {
            taken.formUnion(ProtocolModel.Explorer.explore(model, checking: []).taken)
        }
        for step in ProtocolModel.WriterStep.allCases where step != .unlockObjectEarly {
            #expect(taken.contains(step))
        }
        for step in ProtocolModel.CollectorStep.allCases { #expect(taken.contains(step)) }
    }
}
