// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct EarlyRefreshTests {
    /// −ln of a uniform draw is exponential: P(due) = e^(−rest ÷ (cost·β)).
    @Test(arguments: [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (4.0, 0.5)])
    func `early refreshes follow the exponential distribution`(_ rest: Double, _ beta: Double) {
        var generator = SeededGenerator(seed: 7)
        let draws = 100_000
        let due = (0..<draws).count { _ in
            EarlyRefresh.isDue(rest: rest, cost: 1, beta: beta, using: &generator)
        }
        let expected = exp(-rest / beta)
        let deviation = (expected * (1 - expected) / Double(draws)).squareRoot()
        #expect(abs(Double(due) / Double(draws) - expected) < 5 * deviation)
    }

    @Test func `an expired value is always due, and never one at cost 0, at beta 0 or far from its end`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<1000 {
            #expect(EarlyRefresh.isDue(rest: 0, cost: 1, beta: 1, using: &generator))
            #expect(!EarlyRefresh.isDue(rest: 1, cost: 0, beta: 1, using: &generator))
            #expect(!EarlyRefresh.isDue(rest: 1, cost: 1, beta: 0, using: &generator))
            #expect(!EarlyRefresh.isDue(rest: 38, cost: 1, beta: 1, using: &generator))
        }
    }

    @Test func `the most extreme draw reaches the bound and no farther`() {
        struct Extreme: RandomNumberGenerator {
            func next() -> UInt64 { .max }
        }
        var generator = Extreme()
        #expect(EarlyRefresh.isDue(rest: 36.7, cost: 1, beta: 1, using: &generator))
        #expect(!EarlyRefresh.isDue(rest: 37, cost: 1, beta: 1, using: &generator))
    }
}

@Suite(.takesTurns) struct FailureMemoryTests {
    let key = FlightKey(digest: Digest(ofKey: "key"), form: MemoryEntry.bytes)
    let now = Timestamp(nanoseconds: 1_700_000_000_000_000_000)
    var memory = FailureMemory()

    @Test mutating func `an error is remembered for the given time and no longer`() {
        memory.note(Broken(number: 1), of: key, for: .seconds(10), now: now)
        #expect(
            memory.error(of: key, within: .seconds(10), now: now + .milliseconds(9999)) as? Broken
                == Broken(number: 1)
        )
        #expect(memory.error(of: key, within: .seconds(10), now: now + .seconds(10)) == nil)
        #expect(memory.error(of: key, within: .seconds(5), now: now + .seconds(6)) == nil)
        #expect(
            memory.error(of: key, within: .seconds(10), now: now - .seconds(1)) == nil,
            "a clock put back"
        )
        memory.forget(key)
        #expect(memory.error(of: key, within: .seconds(10), now: now) == nil)
    }

    @Test mutating func `the number of remembered failures is bounded`() {
        for index in 0..<5000 {
            let key = FlightKey(digest: Digest(ofKey: "\(index)"), form: MemoryEntry.bytes)
            memory.note(Broken(), of: key, for: .seconds(10), now: now + .milliseconds(index))
            #expect(memory.count <= FailureMemory.capacity)
            #expect(memory.error(of: key, within: .seconds(10), now: now + .milliseconds(index)) != nil)
        }
    }
}
