// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@Suite(.takesTurns) struct AlignedArrayTests {
    private final class Token: Sendable {}

    @Test func `elements stay what they are when the array grows`() {
        var array = AlignedArray<Int>()
        for number in 0..<1000 { array.append(number) }
        array[500] = -1
        #expect(array.count == 1000)
        for number in 0..<1000 { #expect(array[number] == (number == 500 ? -1 : number)) }
    }

    @Test func `elements live as long as the array, and no longer`() {
        weak var appended: Token?
        weak var repeated: Token?
        do {
            let token = Token()
            repeated = token
            var array = AlignedArray(repeating: token, count: 3)
            for _ in 0..<20 { array.append(Token()) }
            appended = array[22]
            #expect(appended != nil && repeated != nil)
            array[22] = token
            #expect(appended == nil)
        }
        #expect(repeated == nil)
    }

    @Test func `each value of a lock array is behind a lock of its own`() async {
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
        // While one is held another can be taken.
        array.locks.withLock(at: 0) { _ in array.locks.withLock(at: 1) { $0 = 0 } }
    }

    private final class Shared: Sendable {
        let locks = LockArray(count: 3) { 0 }
    }
}
