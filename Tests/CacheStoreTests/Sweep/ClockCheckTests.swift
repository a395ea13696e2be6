// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct ClockCheckTests {
    @Test func `a clock that was set back is unsteady, one that runs or leaps ahead is steady`() {
        #expect(ClockCheck().isSteady)
        #expect(ClockCheck(time: .now - .seconds(100)).isSteady)
        #expect(!ClockCheck(time: .now + .seconds(100)).isSteady)
    }
}
