// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@Suite(.takesTurns) struct AlignedArrayTests {
    private final class Token: Sendable {}

    @Test func `each element keeps its value`() {
        var array = AlignedArray(repeating: 7, count: 1000)
        for number in 0..<500 { array[number] = number }
        #expect(array.count == 1000)
        for number in 0..<1000 { #expect(array[number] == (number < 500 ? number : 7)) }
        #expect(AlignedArray<Int>().count == 0)
    }

    @Test func `elements live as long as the array, and no longer`() {
        weak var repeated: Token?
        weak var replaced: Token?
        do {
            let token = Token()
            repeated = token
            var array = AlignedArray(repeating: token, count: 3)
            array[1] = Token()
            replaced = array[1]
            #expect(replaced != nil && repeated != nil)
            array[1] = token
            #expect(replaced == nil)
        }
        #expect(repeated == nil)
    }

    @Test func `each value of a lock array has a separate lock`() async {
        let array = Shared()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    for round in 0..<1000 { array.locks.withLock(at: (task + round) % 3) { $0 += 1 } }
                }
            }
        }
        let sums = (0..<3).map { array.locks.withLock(at: $0) { $0 } }
        #expect(sums.reduce(0, +) == 4000)
        // While one lock is held, another can be taken.
        array.locks.withLock(at: 0) { _ in array.locks.withLock(at: 1) { $0 = 0 } }
    }

    private final class Shared: Sendable {
        let locks = LockArray(count: 3) { 0 }
    }
}
