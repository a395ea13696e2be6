// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct ClockWitnessTests {
    @Test func `a clock that was set back is unsteady, one that runs or leaps ahead is steady`() {
        #expect(ClockWitness().isSteady)
        #expect(ClockWitness(time: .now - .seconds(100)).isSteady)
        #expect(!ClockWitness(time: .now + .seconds(100)).isSteady)
    }
}
