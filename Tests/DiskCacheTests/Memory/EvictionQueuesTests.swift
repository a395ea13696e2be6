// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct EvictionQueuesTests {
    /// The queues with a frequency counter for each element.
    private struct Model {
        var queues = EvictionQueues<Int>()
        var frequencies: [Int: UInt8] = [:]

        mutating func insert(_ element: Int, cost: Int = 1) {
            frequencies[element] = 0
            _ = queues.insert(element, fingerprint: UInt64(element), cost: cost)
        }

        mutating func evict(_ measure: EvictionQueues<Int>.Measure = .count) -> Int? {
            // Moved, not copied: a copy takes as long as there are elements.
            var frequencies: [Int: UInt8] = [:]
            swap(&frequencies, &self.frequencies)
            defer { swap(&frequencies, &self.frequencies) }
            return queues.evict(for: measure) { element, change in
                let old = frequencies[element] ?? 0
                frequencies[element] = change(old)
                return old
            }
        }
    }

    @Test func `values used at most once are evicted in insertion order`() {
        var model = Model()
        for element in 1...3 { model.insert(element) }
        model.frequencies[1] = 1
        #expect([model.evict(), model.evict(), model.evict(), model.evict()] == [1, 2, 3, nil])
    }

    @Test func `a value used twice moves to the main queue`() {
        var model = Model()
        for element in 1...3 { model.insert(element) }
        model.frequencies[1] = 2
        #expect(model.evict() == 2)
        #expect(model.queues.mainCount == 1)
        #expect(model.frequencies[1] == 0, "it starts anew there")
    }

    @Test func `a value inserted again while it is a ghost enters the main queue`() {
        var model = Model()
        for element in 1...3 { model.insert(element) }
        #expect(model.evict() == 1)
        model.insert(1)
        #expect(model.queues.mainCount == 1)
        #expect(model.queues.ghosts.count == 0)
    }

    @Test func `the main queue grants another round for each use of a value`() {
        var model = Model()
        for element in 1...20 { model.insert(element) }
        for element in 1...20 { model.frequencies[element] = 2 }
        // All but the last, which is less than a tenth, move to the main queue, whose first element is evicted.
        #expect(model.evict() == 1)
        #expect(model.queues.mainCount == 18)
        model.frequencies[2] = 3
        model.frequencies[3] = 1
        #expect(model.evict() == 4)
        #expect(model.frequencies[2] == 2)
        #expect(model.frequencies[3] == 0)
    }

    @Test func `nothing is evicted from a small queue below its share`() {
        var model = Model()
        for element in 1...20 { model.insert(element) }
        for element in 1...20 { model.frequencies[element] = 2 }
        #expect(model.evict() == 1)
        model.insert(100)
        // 20 moves to the main queue, too; 100 alone of 20 elements is less than a tenth.
        #expect(model.evict() == 2)
        model.insert(101)
        model.insert(102)
        #expect(model.evict() == 100)
    }

    @Test func `the share is measured by cost if the eviction is for cost`() {
        var model = Model()
        for element in 1...9 { model.insert(element, cost: 1) }
        for element in 1...9 { model.frequencies[element] = 2 }
        #expect(model.evict() == 1)
        model.insert(100, cost: 0)
        #expect(model.evict(.cost) == 2, "the small queue holds no cost")
        #expect(model.evict(.count) == 100, "but more than a tenth of the values")
    }

    @Test func `no more ghosts are kept than there are values`() {
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

    @Test func `an eviction ends even if all values are in constant use`() {
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

    @Test func `a ghost is kept until half a capacity of others is added, and dropped at a full one`() {
        var ghosts = GhostList()
        for fingerprint in 0..<100 as Range<UInt64> {
            ghosts.add(fingerprint, capacity: 10)
            #expect(ghosts.count <= 10)
            #expect(ghosts.contains(fingerprint) && ghosts.contains(fingerprint - min(fingerprint, 5)))
            #expect(fingerprint < 10 || !ghosts.contains(fingerprint - 10))
        }
    }

    @Test func `a taken ghost is forgotten, and a ghost added again is renewed`() {
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

    /// Returns a full cache of 1,000 values, each of which is used `uses` times before it is evicted.
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

    @Test func `if newcomers are not used, a quarter is admitted, and all that return`() {
        var model = filled(uses: 0)
        let newcomers = (100_000..<100_400).filter { model.queues.admits(UInt64($0)) }
        #expect(newcomers.count == 100)
        let returning = (100_000..<100_400).filter { model.queues.admits(UInt64($0)) }
        #expect(returning.count == 400 - 100 + 100 / 4, "those that were admitted are not ghosts")
    }

    @Test func `if newcomers are used, all are admitted`() {
        var model = filled(uses: 1)
        let newcomers = (100_000..<100_400).filter { model.queues.admits(UInt64($0)) }
        #expect(newcomers.count == 400)
    }

    @Test func `once newcomers are used again, all are admitted`() {
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
