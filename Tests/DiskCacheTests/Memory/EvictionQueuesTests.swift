// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct EvictionQueuesTests {
    /// The queues with a counter for each of a few numbers.
    private struct Model {
        var queues = EvictionQueues<Int>()
        var frequencies: [Int: UInt8] = [:]

        mutating func insert(_ element: Int, cost: Int = 1) {
            frequencies[element] = 0
            _ = queues.insert(element, fingerprint: UInt64(element), cost: cost)
        }

        mutating func evict(_ measure: EvictionQueues<Int>.Measure = .count) -> Int? {
            var frequencies = frequencies
            defer { self.frequencies = frequencies }
            return queues.evict(for: measure) { element, change in
                let old = frequencies[element] ?? 0
                frequencies[element] = change(old)
                return old
            }?.element
        }
    }

    @Test func `what was asked for once or never leaves in the order in which it came`() {
        var model = Model()
        for element in 1...3 { model.insert(element) }
        model.frequencies[1] = 1
        #expect([model.evict(), model.evict(), model.evict(), model.evict()] == [1, 2, 3, nil])
    }

    @Test func `what was asked for twice goes on to the main queue`() {
        var model = Model()
        for element in 1...3 { model.insert(element) }
        model.frequencies[1] = 2
        #expect(model.evict() == 2)
        #expect(model.queues.mainCount == 1)
        #expect(model.frequencies[1] == 0, "it starts anew there")
    }

    @Test func `what comes back while it is remembered enters the main queue`() {
        var model = Model()
        for element in 1...3 { model.insert(element) }
        #expect(model.evict() == 1)
        model.insert(1)
        #expect(model.queues.mainCount == 1)
        #expect(model.queues.ghostCount == 0)
    }

    @Test func `the main queue gives another round for each time that a value was asked for`() {
        var model = Model()
        for element in 1...20 { model.insert(element) }
        for element in 1...20 { model.frequencies[element] = 2 }
        // All but the last, less than a tenth, move to the main queue, the first of which leaves.
        #expect(model.evict() == 1)
        #expect(model.queues.mainCount == 18)
        model.frequencies[2] = 3
        model.frequencies[3] = 1
        #expect(model.evict() == 4)
        #expect(model.frequencies[2] == 2)
        #expect(model.frequencies[3] == 0)
    }

    @Test func `a small queue below its share is left alone`() {
        var model = Model()
        for element in 1...20 { model.insert(element) }
        for element in 1...20 { model.frequencies[element] = 2 }
        #expect(model.evict() == 1)
        model.insert(100)
        // 20 moves on too; 100 alone of 20 is less than a tenth.
        #expect(model.evict() == 2)
        model.insert(101)
        model.insert(102)
        #expect(model.evict() == 100)
    }

    @Test func `the share is one of cost where cost is short`() {
        var model = Model()
        for element in 1...9 { model.insert(element, cost: 1) }
        for element in 1...9 { model.frequencies[element] = 2 }
        #expect(model.evict() == 1)
        model.insert(100, cost: 0)
        #expect(model.evict(.cost) == 2, "the small queue holds no cost")
        #expect(model.evict(.count) == 100, "but more than a tenth of the values")
    }

    @Test func `no more ghosts are remembered than there are values`() {
        var model = Model()
        for element in 1...10 { model.insert(element) }
        for element in 11...1000 {
            _ = model.evict()
            model.insert(element)
        }
        #expect(model.queues.ghostCount == 10)
    }

    @Test func `removal from the middle and cost changes keep the totals`() {
        var queues = EvictionQueues<Int>()
        let handles = (0..<5).map { queues.insert($0, fingerprint: UInt64($0), cost: 10) }
        queues.remove(handles[2])
        queues.setCost(3, of: handles[4])
        #expect(queues.count == 4)
        #expect(queues.cost == 33)
        var order: [Int] = []
        queues.forEachOldestFirst { element, _ in order.append(element) }
        #expect(order == [0, 1, 3, 4])
    }

    @Test func `values that are all in constant use do not keep an eviction going`() {
        var queues = EvictionQueues<Int>()
        for element in 0..<10_000 { _ = queues.insert(element, fingerprint: UInt64(element), cost: 1) }
        var looks = 0
        let victim = queues.evict(for: .count) { _, _ in
            looks += 1
            return 3
        }
        #expect(victim != nil)
        #expect(looks <= 4096)
    }

    @Test func `a ghost that was taken and is evicted again counts from then`() {
        var ghosts = GhostList()
        ghosts.add(1, capacity: 3)
        ghosts.add(2, capacity: 3)
        let first = [ghosts.take(1), ghosts.take(1)]
        #expect(first == [true, false])
        ghosts.add(1, capacity: 3)
        ghosts.add(3, capacity: 3)
        ghosts.add(4, capacity: 3)
        let later = [2, 1, 3, 4].map { ghosts.take($0) }
        #expect(later == [false, true, true, true])
    }
}
