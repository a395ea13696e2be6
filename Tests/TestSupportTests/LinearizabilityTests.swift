// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// The check of the histories that processes have recorded.
@Suite(.takesTurns) struct LinearizabilityTests {
    private typealias Operation = RegisterOperation

    private func kinds(_ history: [RegisterOperation]) -> [LinearizabilityViolation.Kind] {
        Linearizability.violations(of: history).map(\.kind)
    }

    @Test func `a read during a write may return the value before or after it`() {
        let history = [
            Operation(.write(1), 0, 10), Operation(.write(2), 20, 60),
            Operation(.read(1), 30, 40), Operation(.read(2), 45, 50), Operation(.miss, 52, 55),
        ]
        #expect(kinds(history).isEmpty)
    }

    @Test func `a read of the old value after a read of the new one is detected`() throws {
        let history = [
            Operation(.write(1), 0, 10), Operation(.write(2), 20, 60),
            Operation(.read(2), 30, 40), Operation(.read(1), 45, 50),
        ]
        #expect(kinds(history) == [.overwritten])
        let found = try #require(Linearizability.violations(of: history).first)
        #expect(found.operations.count == 4 && found.operations.allSatisfy(history.contains))
    }

    @Test func `a read of the old value after the new value's write returned is detected`() {
        let history = [
            Operation(.write(1), 0, 10), Operation(.write(2), 20, 30), Operation(.read(1), 31, 40),
        ]
        #expect(kinds(history) == [.overwritten])
        #expect(kinds(history.reversed()) == [.overwritten], "in whatever order they are told")
    }

    @Test func `a read of a value after a remove is detected, and misses are allowed`() {
        let history = [Operation(.write(1), 0, 10), Operation(.remove, 20, 30)]
        #expect(kinds(history + [Operation(.read(1), 31, 40)]) == [.overwritten])
        #expect(kinds(history + [Operation(.read(1), 30, 40)]).isEmpty, "at the same instant")
        #expect(kinds(history + [Operation(.miss, 5, 6), Operation(.read(1), 7, 25)]).isEmpty)
    }

    @Test func `a value never written, read before its write, or written twice is detected`() {
        #expect(kinds([Operation(.read(1), 0, 10)]) == [.neverWritten])
        #expect(kinds([Operation(.read(1), 0, 10), Operation(.write(1), 11, 20)]).contains(.readBeforeWrite))
        let twice = [Operation(.write(1), 0, 10), Operation(.write(1), 20, 30)]
        #expect(kinds(twice).contains(.writtenTwice))
    }

    @Test func `a pending write counts only if its value was read`() {
        let pending = Operation(.write(2), 20, 100, isPending: true)
        let before = Operation(.write(1), 0, 10)
        #expect(kinds([before, pending, Operation(.read(1), 200, 210)]).isEmpty)
        #expect(kinds([before, pending, Operation(.read(2), 200, 210)]).isEmpty)
        let both = [before, pending, Operation(.read(2), 30, 40), Operation(.read(1), 50, 60)]
        #expect(kinds(both) == [.overwritten])
        let late = Operation(.read(2), 120, 130)
        let seenLate = [before, pending, Operation(.read(1), 105, 110), late]
        #expect(kinds(seenLate) == [.interleaved], "it can't have taken effect after its process had ended")
        #expect(
            kinds([before, Operation(.remove, 20, 30, isPending: true), Operation(.read(1), 40, 50)]).isEmpty
        )
    }

    @Test(arguments: 0..<8)
    func `the check agrees with a search through all orders`(batch: Int) {
        var generator = SeededGenerator(seed: UInt64(batch))
        var verdicts = [true: 0, false: 0]
        for _ in 0..<5000 {
            var history = RandomHistory.linearizable(using: &generator)
            let isCorrupted = Int.random(in: 0..<4, using: &generator) > 0
            if isCorrupted { RandomHistory.corrupt(&history, using: &generator) }
            let expected = LinearizationSearch.exists(for: history)
            let found = Linearizability.violations(of: history)
            if !isCorrupted { #expect(expected, "the generator is wrong: \(history)") }
            #expect(found.isEmpty == expected, "\(history), found: \(found)")
            verdicts[expected, default: 0] += 1
        }
        #expect(verdicts.values.allSatisfy { $0 > 500 }, "the histories must be of both kinds: \(verdicts)")
    }

    @Test func `long histories are checked`() {
        var history: [RegisterOperation] = []
        for value in UInt64(1)...50_000 {
            history.append(Operation(.write(value), value * 10, value * 10 + 12))
            history.append(Operation(.read(value), value * 10 + 5, value * 10 + 9))
        }
        #expect(kinds(history).isEmpty)
        history.append(Operation(.read(25_000), 250_030, 250_040))
        #expect(!kinds(history).isEmpty)
    }
}
