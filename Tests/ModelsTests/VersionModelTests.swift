// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Models

@Suite("The order of changes on several machines, in every interleaving, with every crash", .takesTurns)
struct VersionModelTests {
    /// A kind of server, and what else may happen.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var server = VersionModel.Server.comparing
        var levels = 1
        var changes: (UInt8, UInt8) = (1, 1)
        var budget = VersionModel.Budget()
        var isFarAhead = false

        func model(_ mistake: VersionModel.Mistake? = nil) -> VersionModel.Model {
            var model = VersionModel.Model(server)
            (model.levels, model.changes, model.budget) = (levels, changes, budget)
            (model.isFarAhead, model.mistake) = (isFarAhead, mistake)
            return model
        }
    }

    static let fullDisk = Case(
        testDescription: "plain server, full disk",
        server: .plain,
        budget: .init(unstored: 1)
    )
    static let fullTable = Case(
        testDescription: "plain server, full table",
        server: .plain,
        budget: .init(drops: 1)
    )
    static let fullTableOfOne = Case(
        testDescription: "changes of one machine, full table",
        changes: (2, 0),
        budget: .init(drops: 1)
    )
    static let fullTableLater = Case(
        testDescription: "three changes, full table",
        changes: (2, 1),
        budget: .init(drops: 1)
    )
    static let removedAll = Case(
        testDescription: "plain server, removal of all values",
        server: .plain,
        budget: .init(clearings: 1)
    )
    static let lateRequests = Case(
        testDescription: "late requests of one machine",
        changes: (2, 0),
        budget: .init(lateRequests: 2)
    )
    static let conditions = Case(
        testDescription: "server with conditions, late request",
        server: .conditional,
        budget: .init(lateRequests: 1)
    )
    static let modes = Case(testDescription: "modes", budget: .init(modes: 2))
    static let lostFiles = Case(testDescription: "lost files", budget: .init(losses: 1))
    static let farClock = Case(
        testDescription: "lost files, a clock that is far ahead",
        budget: .init(losses: 1),
        isFarAhead: true
    )
    static let levels = Case(testDescription: "two levels", levels: 2)
    static let threeChanges = Case(testDescription: "three changes", changes: (2, 1))
    static let usual = [
        fullDisk, fullTable, fullTableOfOne, removedAll, lateRequests, conditions, modes, lostFiles, farClock,
        levels,
        Case(testDescription: "late request", budget: .init(lateRequests: 1)),
        Case(
            testDescription: "plain server, late request",
            server: .plain,
            budget: .init(lateRequests: 1)
        ),
        Case(testDescription: "plain server, lost files", server: .plain, budget: .init(losses: 1)),
        Case(testDescription: "plain server, lost value", server: .plain, budget: .init(lostValues: 1)),
    ]
    static let large = [
        threeChanges,
        Case(testDescription: "lost value, late request", budget: .init(lateRequests: 1, lostValues: 1)),
        Case(testDescription: "lost files, later time", budget: .init(losses: 1, ticks: 1)),
        Case(testDescription: "files lost twice", budget: .init(losses: 2)),
        Case(testDescription: "lost files, removal of all values", budget: .init(losses: 1, clearings: 1)),
        Case(testDescription: "two levels with conditions", server: .conditional, levels: 2),
        Case(testDescription: "plain server, three changes", server: .plain, changes: (2, 1)),
    ]
    static let cases = isSoak ? usual + large : sample(4, of: usual)

    @Test("no machine goes back to an older version", arguments: cases)
    func isSound(_ example: Case) {
        let outcome = example.model().explore()
        #expect(outcome.trace == nil, "\(outcome.trace?.joined(separator: "\n") ?? "")")
        #expect(outcome.states.count > 50_000)
    }

    @Test("the machines share values and removals")
    func isUseful() {
        let states = Self.fullTable.model().explore().states
        let others = states.filter { $0[machine: 0].changesLeft == 1 && $0[machine: 1].changesLeft == 0 }
        #expect(others.contains { $0[machine: 0].entry != 0 }, "a value is taken from another machine")
        #expect(
            others.contains {
                $0[machine: 0].seen != 0 && $0[machine: 0].seen == $0[machine: 0].entry
            },
            "a value that was evicted is taken again"
        )
        #expect(
            others.contains { state in
                let machine = state[machine: 0]
                return machine.entry == 0 && state[level: 0] == .removal(machine.seen)
            },
            "a removal is taken from another machine"
        )
        let lost = Self.lostFiles.model().explore().states
        for (states, words) in [(states, "a version was dropped"), (lost, "files were lost")] {
            #expect(
                states.contains { state in
                    let machine = state[machine: 0]
                    return machine.floor != 0 && machine.entry > machine.floor && machine.entry & 1 == 1
                },
                "a newer value of another machine is taken after \(words)"
            )
        }
    }

    @Test("a plain server may carry out an older request last, for machines that have not seen the newer one")
    func plainServerGoesBack() {
        var model = Self.fullDisk.model()
        model.budget.unstored = 0
        let isQuiet = { (state: VersionModel.State) in
            (0..<2).allSatisfy { state[machine: $0].note == 0 && state[machine: $0].sender == .idle }
        }
        // Without late requests, but with two requests at the same time.
        #expect(
            model.explore().states.contains { state in
                isQuiet(state) && state[level: 0].version == state[machine: 0].entry
                    && state[machine: 0].promised < state[machine: 1].promised
            },
            "the older version stays on the server"
        )
        model.checksServers = true
        #expect(model.explore().trace != nil)
    }

    @Test("each mistake in the protocol is found", arguments: VersionModel.Mistake.allCases)
    func mistakeIsFound(_ mistake: VersionModel.Mistake) {
        let outcome = mistake.example.model(mistake).explore()
        #expect(outcome.trace != nil, "\(mistake) in \(outcome.states.count) states")
    }
}

extension VersionModel.Mistake {
    /// The case in which the mistake is found.
    fileprivate var example: VersionModelTests.Case {
        switch self {
        case .versionUnchecked, .entryUnchecked, .adoptedWithoutStripe, .machineNumberIgnored,
            .evictionForgotten,
            .evictionRememberedLate, .evictedWithoutStripe, .removalForgotten, .seenRemovalForgotten,
            .unstoredForgotten, .olderEntryStays, .clockNotMoved, .wallClockOnly, .plainNotRead,
            .removalDeletes:
            VersionModelTests.fullDisk
        case .clockNotMovedBySender: VersionModelTests.threeChanges
        case .floorNotRaised: VersionModelTests.fullTable
        case .olderEntrySent: VersionModelTests.fullTableOfOne
        case .removalHidden: VersionModelTests.fullTableLater
        case .clearedLikeFloor: VersionModelTests.removedAll
        case .drawnBeforeStripe, .noBarrier, .struckWithoutNumber, .comparedBeforehand:
            VersionModelTests.lateRequests
        case .conflictTakenAsDone: VersionModelTests.conditions
        case .offForgotten: VersionModelTests.modes
        case .clockNotKept, .clockNotRestored, .floorNotRestored, .oldFileUsed, .floorAtWallClock:
            VersionModelTests.lostFiles
        case .farAheadTaken, .farAheadKept: VersionModelTests.farClock
        case .struckAfterFirstLevel, .fillUnconditional: VersionModelTests.levels
        }
    }
}
