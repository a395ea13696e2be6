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
            }
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
        #expect(model.queues.ghosts.count == 0)
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
        #expect(model.queues.ghosts.count == 10)
    }

    @Test func `removal from the middle and replacement keep order and totals`() {
        var queues = EvictionQueues<Int>()
        let handles = (0..<5).map { queues.insert($0, fingerprint: UInt64($0), cost: 10) }
        queues.remove(handles[2])
        queues.replace(handles[3], by: 33, cost: 3)
        #expect(queues.count == 4)
        #expect(queues.cost == 33)
        var order: [Int] = []
        queues.forEachOldestFirst { order.append($0) }
        #expect(order == [0, 1, 33, 4])
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

    @Test func `a ghost is remembered until half as many others are, and forgotten before as many are`() {
        var ghosts = GhostList()
        for fingerprint in 0..<100 as Range<UInt64> {
            ghosts.add(fingerprint, capacity: 10)
            #expect(ghosts.count <= 10)
            #expect(ghosts.contains(fingerprint) && ghosts.contains(fingerprint - min(fingerprint, 5)))
            #expect(fingerprint < 10 || !ghosts.contains(fingerprint - 10))
        }
    }

    @Test func `a ghost that was taken is forgotten, and when it is evicted again counts from then`() {
        var ghosts = GhostList()
        for fingerprint in 1...4 as ClosedRange<UInt64> { ghosts.add(fingerprint, capacity: 4) }
        let first = [ghosts.take(1), ghosts.take(1)]
        #expect(first == [true, false])
        ghosts.add(2, capacity: 4)
        ghosts.add(5, capacity: 4)
        let later = [1, 2, 3, 4, 5].map { ghosts.contains($0) }
        #expect(later == [false, true, true, true, true])
    }

    // MARK: Newcomers

    /// A full cache of 1,000 values, each of which is asked for `uses` times before it is evicted.
    private func filled(uses: UInt8) -> Model {
        var model = Model()
        for element in 0..<1000 { model.insert(element) }
        for element in 1000..<20_000 {
            _ = model.evict()
            model.insert(element)
            model.frequencies[element] = uses
        }
        return model
    }

    @Test func `where newcomers are not asked for a quarter is admitted, and what comes back`() {
        var model = filled(uses: 0)
        let newcomers = (100_000..<100_400).filter { model.queues.admits(UInt64($0)) }
        #expect(newcomers.count == 100)
        let returning = (100_000..<100_400).filter { model.queues.admits(UInt64($0)) }
        #expect(returning.count == 400 - 100 + 100 / 4, "those that were admitted are not ghosts")
    }

    @Test func `where newcomers are asked for all are admitted`() {
        var model = filled(uses: 1)
        let newcomers = (100_000..<100_400).filter { model.queues.admits(UInt64($0)) }
        #expect(newcomers.count == 400)
    }

    @Test func `when newcomers begin to be asked for all are admitted again`() {
        var model = filled(uses: 0)
        var admitted = 0
        for element in 100_000..<120_000 where model.queues.admits(UInt64(element)) {
            admitted += 1
            _ = model.evict()
            model.insert(element)
            model.frequencies[element] = 1
        }
        #expect(admitted > 14_000)
        let newcomers = (200_000..<200_100).filter { model.queues.admits(UInt64($0)) }
        #expect(newcomers.count == 100)
    }
}
