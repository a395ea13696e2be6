// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// Calls of `value(forKey:)` and removals in every order of their steps; see ``FlightModel``.
@Suite(.takesTurns) struct FlightModelTests {
    @Test(arguments: sample(1, of: [[0, 0, 0], [0, 0, 1], [0, 1, 2]]))
    func `no call returns a value removed before it began, and exactly one computes`(processes: [Int]) {
        let model = FlightModel.explore(processes, removals: 1, .failures)
        #expect(model.faults.isEmpty)
        #expect(model.count > 1000, "it explores something")
    }

    @Test(arguments: [[0, 0], [0, 1]])
    func `no call returns a value removed before it began if waits time out`(processes: [Int]) {
        let model = FlightModel.explore(processes, removals: 1, [.failures, .impatience])
        #expect(model.faults.isEmpty)
        #expect(model.count > 1000, "it explores something")
    }

    @Test(arguments: sample(1, of: [[0, 0, 0], [0, 0, 1]]))
    func `no call returns a value removed before it began if values are refused`(processes: [Int]) {
        let model = FlightModel.explore(processes, removals: 1, [.failures, .refusals])
        #expect(model.faults.isEmpty)
        #expect(model.count > 1000, "it explores something")
    }

    @Test(arguments: FlightModel.Mistake.allCases)
    func `the model detects a flight that is closed too late`(mistake: FlightModel.Mistake) {
        let model = FlightModel.explore([0, 0, 1], removals: 1, [], mistake)
        #expect(model.faults == ["a call returns what was gone before it began"])
    }
}
