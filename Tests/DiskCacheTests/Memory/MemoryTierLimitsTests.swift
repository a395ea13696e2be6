// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct MemoryTierLimitsTests {
    let log = RemovalLog()

    /// Ten values of cost 10 each, "0" to "9".
    private func makeTier() -> MemoryTier {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10), onRemoval: log.add)
        for number in 0..<10 { tier.insert(Token(), forKey: "\(number)", cost: 10, stamp: MemoryStamp()) }
        return tier
    }

    private func held(_ tier: MemoryTier) -> [Int] {
        (0..<10).filter { number in tier.value(forKey: "\(number)") { _, _ in .valid } != nil }
    }

    @Test func `lower limits take effect at once`() {
        let tier = makeTier()
        tier.resize(to: MemoryLimits(cost: 55, count: 10))
        #expect(tier.usage == (50, 5))
        #expect(log.causes == Array(repeating: .cost, count: 5))
        tier.resize(to: MemoryLimits(cost: 55, count: 2))
        #expect(tier.usage == (20, 2))
        #expect(log.causes.suffix(3) == [.count, .count, .count])
        tier.resize(to: MemoryLimits(cost: 0, count: 0))
        #expect(tier.usage == (0, 0))
    }

    @Test func `a frozen tier keeps and gives out what it has and admits nothing`() {
        let tier = makeTier()
        tier.isFrozen = true
        #expect(tier.isFrozen)
        #expect(tier.insert(Token(), forKey: "x", cost: 1, stamp: MemoryStamp()) == .frozen)
        #expect(held(tier) == Array(0..<10))
        #expect(log.removals.isEmpty)
        // An old value must not stay where a new one was written.
        #expect(tier.insert(Token(), forKey: "3", cost: 1, stamp: MemoryStamp()) == .frozen)
        _ = tier.value(forKey: "4") { _, _ in .expired }
        tier.remove("5")
        #expect(held(tier) == [0, 1, 2, 6, 7, 8, 9])
        #expect(log.causes == [.replaced, .expired, .explicit])
        tier.isFrozen = false
        #expect(tier.insert(Token(), forKey: "3", cost: 1, stamp: MemoryStamp()) == .admitted)
    }

    @Test func `removeAll empties the tier, which then takes new values`() {
        let tier = makeTier()
        tier.removeAll(cause: .explicit)
        #expect(tier.usage == (0, 0))
        #expect(log.keys == (0..<10).map { "\($0)" })
        #expect(log.removals.allSatisfy { $0.cost == 10 && $0.cause == .explicit })
        tier.insert(Token(), forKey: "3", cost: 1, stamp: MemoryStamp())
        #expect(held(tier) == [3])
    }

    @Test func `under pressure the tier shrinks to the part of what it holds`() {
        let tier = makeTier()
        tier.shrink(to: 0.5)
        #expect(tier.usage == (50, 5))
        #expect(log.causes == Array(repeating: .pressure, count: 5))
        tier.shrink(to: 0)
        #expect(tier.usage == (0, 0))
    }

    @Test func `values that cost nothing shrink by their number`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10))
        for number in 0..<10 { tier.insert(Token(), forKey: "\(number)", cost: 0, stamp: MemoryStamp()) }
        tier.shrink(to: 0.3)
        #expect(tier.usage == (0, 3))
    }

    /// A value with a part that it can do without.
    private final class Picture: DiscardableItem {
        let isInUse: Bool
        init(isInUse: Bool = false) { self.isInUse = isInUse }
        func discarded() -> (item: any MemoryItem, cost: Int)? { isInUse ? nil : (Token(), 2) }
    }

    @Test func `what can be discarded is, the oldest first, before anything is evicted`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10), onRemoval: log.add)
        for number in 0..<10 {
            let item: any MemoryItem = number < 6 ? Picture(isInUse: number == 1) : Token()
            tier.insert(item, forKey: "\(number)", cost: 10, stamp: MemoryStamp())
        }
        tier.shrink(to: 0.7)
        // Four of the five that are not in use: 0, 2, 3 and 4.
        #expect(log.removals.isEmpty)
        #expect(tier.usage == (68, 10))
        let pictures = (0..<10).filter { tier.value(forKey: "\($0)") { _, _ in .valid } is Picture }
        #expect(pictures == [1, 5])
        tier.shrink(to: 0.5)
        #expect(tier.usage.cost <= 34)
        #expect(!log.removals.isEmpty && log.causes.allSatisfy { $0 == .pressure })
    }

    /// One during whose discarding the tier changes.
    private final class Meddler: DiscardableItem {
        let meddle: @Sendable () -> Void
        init(_ meddle: @escaping @Sendable () -> Void) { self.meddle = meddle }

        func discarded() -> (item: any MemoryItem, cost: Int)? {
            meddle()
            return (Token(), 2)
        }
    }

    @Test func `a value that leaves while it is discarded changes nothing any more`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 1000, count: 10), onRemoval: log.add)
        let empty: @Sendable () -> Void = { tier.removeAll() }
        let replace: @Sendable () -> Void = {
            tier.remove("key")
            // In another shard or not, it gets the place in the queues that has become free.
            tier.insert(Token(), forKey: "other", cost: 50, stamp: MemoryStamp())
        }
        for (meddle, cost) in [(empty, 0), (replace, 50)] {
            tier.insert(Meddler(meddle), forKey: "key", cost: 100, stamp: MemoryStamp())
            tier.shrink(to: 0.9)
            #expect(tier.usage.cost == cost)
            tier.removeAll()
            #expect(log.removals.last?.cost == (cost == 0 ? 100 : cost))
            #expect(tier.usage == (0, 0))
        }
    }

    @Test func `a discarded form that costs more is not taken`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10))
        let picture = Picture()
        tier.insert(picture, forKey: "key", cost: 1, stamp: MemoryStamp())
        tier.insert(Token(), forKey: "other", cost: 9, stamp: MemoryStamp())
        tier.shrink(to: 0.95)
        #expect(tier.usage.cost <= 9)
        #expect(tier.value(forKey: "other") { _, _ in .valid } != nil || tier.usage.cost == 1)
    }

    @Test func `totals are exact after any mixture of calls from many threads`() {
        let admitted = Locked.Box(0)
        let tier = MemoryTier(limits: MemoryLimits(cost: 500, count: 90), onRemoval: log.add)
        onThreads(6) { thread in
            var random = SeededGenerator(seed: UInt64(thread))
            for _ in 0..<4000 {
                let key = "\(random.next() % 200)"
                switch random.next() % 20 {
                case 0: tier.remove(key)
                case 1: _ = tier.value(forKey: key) { _, _ in .expired }
                case 2 where random.next() % 50 == 0: tier.removeAll()
                case 2: tier.shrink(to: 0.9)
                case 3: tier.resize(to: MemoryLimits(cost: Int(random.next() % 100) + 400, count: 90))
                case 4...10:
                    let cost = Int(random.next() % 30)
                    if tier.insert(Token(), forKey: key, cost: cost, stamp: MemoryStamp()) == .admitted {
                        admitted.value.withLock { $0 += cost }
                    }
                default: _ = tier.value(forKey: key) { _, _ in .valid }
                }
                let usage = tier.usage
                if usage.cost > 500 || usage.count > 90 { Issue.record("over the limit: \(usage)") }
            }
        }
        let usage = tier.usage
        #expect(usage.cost + log.removals.reduce(0) { $0 + $1.cost } == admitted.value.withLock { $0 })
        let counts = (0..<tier.shards.count).map { tier.shards.withLock(at: $0) { $0.count } }
        #expect(counts.reduce(0, +) == usage.count)
        let held = (0..<200).filter { key in tier.value(forKey: "\(key)") { _, _ in .valid } != nil }
        #expect(held.count == usage.count)
    }
}
