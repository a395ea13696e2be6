// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct MemoryTierLimitsTests {
    let log = RemovalLog()

    /// Returns a tier with ten values of cost 10 each, "0" to "9".
    private func makeTier() -> MemoryTier {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10), onRemoval: log.add)
        for number in 0..<10 { tier.keep(Token("\(number)", cost: 10), by: MemoryValidity()) }
        return tier
    }

    private func held(_ tier: MemoryTier) -> [Int] {
        (0..<10).filter { isHeld(tier, "\($0)") }
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

    @Test func `a frozen tier keeps and returns its values and admits none`() {
        let tier = makeTier()
        tier.isFrozen = true
        #expect(tier.isFrozen)
        #expect(!tier.keep(Token("x", cost: 1), by: MemoryValidity()))
        #expect(held(tier) == Array(0..<10))
        #expect(log.removals.isEmpty)
        // An old value must not stay once a new one has been written.
        #expect(!tier.keep(Token("3", cost: 1), by: MemoryValidity()))
        _ = tier.find("4", at: .distantPast) { _ in .expired }
        tier.remove("5")
        #expect(held(tier) == [0, 1, 2, 6, 7, 8, 9])
        #expect(log.causes == [.replaced, .expired, .explicit])
        tier.isFrozen = false
        #expect(tier.keep(Token("3", cost: 1), by: MemoryValidity()))
    }

    @Test func `removeAll empties the tier, which then admits new values`() {
        let tier = makeTier()
        tier.removeAll(cause: .explicit)
        #expect(tier.usage == (0, 0))
        #expect(log.keys == (0..<10).map { "\($0)" })
        #expect(log.removals.allSatisfy { $0.item.cost == 10 && $0.cause == .explicit })
        tier.keep(Token("3", cost: 1), by: MemoryValidity())
        #expect(held(tier) == [3])
    }

    @Test func `under pressure the tier shrinks to the given part of its cost`() {
        let tier = makeTier()
        tier.shrink(to: 0.5)
        #expect(tier.usage == (50, 5))
        #expect(log.causes == Array(repeating: .pressure, count: 5))
        tier.shrink(to: 0)
        #expect(tier.usage == (0, 0))
    }

    @Test func `a tier of values without cost shrinks by their number`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10))
        for number in 0..<10 { tier.keep(Token("\(number)", cost: 0), by: MemoryValidity()) }
        tier.shrink(to: 0.3)
        #expect(tier.usage == (0, 3))
    }

    /// The form of values that may have a discardable part.
    private static let form = ObjectIdentifier(Picture.self)

    /// A value with a discardable part.
    private final class Picture: MemoryEntry, @unchecked Sendable {
        let isInUse: Bool

        init(_ key: String, cost: Int = 10, isInUse: Bool = false) {
            self.isInUse = isInUse
            super.init(key: key, in: .callers, form: MemoryTierLimitsTests.form, cost: cost)
        }

        override func discarded() -> MemoryEntry? { isInUse ? nil : Token(key, cost: 2, form: form) }
    }

    private func isHeld(_ tier: MemoryTier, _ key: String) -> Bool {
        tier.find(key, at: .distantPast) { _ in nil } != nil
    }

    /// Returns whether the whole value is held.
    private func isWhole(_ tier: MemoryTier, _ key: String) -> Bool {
        tier.find(key, Self.form, at: .distantPast) { _ in nil } is Picture
    }

    @Test func `parts are discarded, oldest first, before any value is evicted`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10), onRemoval: log.add)
        for number in 0..<10 {
            let isPicture = number < 6
            let item = isPicture ? Picture("\(number)", isInUse: number == 1) : Token("\(number)", cost: 10)
            tier.keep(item, by: MemoryValidity())
        }
        tier.shrink(to: 0.7)
        // Four of the five that are not in use: 0, 2, 3 and 4.
        #expect(log.removals.isEmpty)
        #expect(tier.usage == (68, 10))
        let pictures = (0..<10).filter { isWhole(tier, "\($0)") }
        #expect(pictures == [1, 5])
        tier.shrink(to: 0.5)
        #expect(tier.usage.cost <= 34)
        #expect(!log.removals.isEmpty && log.causes.allSatisfy { $0 == .pressure })
    }

    @Test func `values are evicted whole if nothing may be discarded`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10), onRemoval: log.add)
        for number in 0..<10 { tier.keep(Picture("\(number)"), by: MemoryValidity()) }
        tier.shrink(to: 0.5, discarding: false)
        #expect(log.causes == Array(repeating: .pressure, count: 5))
        let pictures = (0..<10).filter { isWhole(tier, "\($0)") }
        #expect(pictures.count == 5)
    }

    /// A value that changes the tier while its part is discarded.
    private final class Meddler: MemoryEntry, @unchecked Sendable {
        let meddle: @Sendable () -> Void

        init(_ key: String, cost: Int, _ meddle: @escaping @Sendable () -> Void) {
            self.meddle = meddle
            super.init(key: key, in: .callers, form: MemoryTierLimitsTests.form, cost: cost)
        }

        override func discarded() -> MemoryEntry? {
            meddle()
            return Token(key, cost: 2, form: form)
        }
    }

    @Test func `a value removed while its part is discarded leaves the totals correct`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 1000, count: 10), onRemoval: log.add)
        let empty: @Sendable () -> Void = { tier.removeAll() }
        let replace: @Sendable () -> Void = {
            tier.remove("key")
            // In the same shard or another, it gets the slot in the queues that has become free.
            tier.keep(Token("other", cost: 50), by: MemoryValidity())
        }
        for (meddle, cost) in [(empty, 0), (replace, 50)] {
            tier.keep(Meddler("key", cost: 100, meddle), by: MemoryValidity())
            tier.shrink(to: 0.9)
            #expect(tier.usage.cost == cost)
            tier.removeAll()
            #expect(log.removals.last?.item.cost == (cost == 0 ? 100 : cost))
            #expect(tier.usage == (0, 0))
        }
    }

    @Test func `a discarded form that costs more is not used`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10))
        tier.keep(Picture("key", cost: 1), by: MemoryValidity())
        tier.keep(Token("other", cost: 9), by: MemoryValidity())
        tier.shrink(to: 0.95)
        #expect(tier.usage.cost <= 9)
        #expect(isHeld(tier, "other") || (tier.usage.cost == 1 && isWhole(tier, "key")))
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
                case 1: _ = tier.find(key, at: .distantPast) { _ in .expired }
                case 2 where random.next() % 50 == 0: tier.removeAll()
                case 2: tier.shrink(to: 0.9)
                case 3: tier.resize(to: MemoryLimits(cost: Int(random.next() % 100) + 400, count: 90))
                case 4...10:
                    let cost = Int(random.next() % 30)
                    if tier.keep(Token(key, cost: cost), by: MemoryValidity()) {
                        admitted.value.withLock { $0 += cost }
                    }
                default: _ = tier.find(key, at: .distantPast) { _ in nil }
                }
                let usage = tier.usage
                if usage.cost > 500 || usage.count > 90 { Issue.record("over the limit: \(usage)") }
            }
        }
        let usage = tier.usage
        #expect(usage.cost + log.removals.reduce(0) { $0 + $1.item.cost } == admitted.value.withLock { $0 })
        let counts = (0..<tier.shards.count).map { tier.shards.withLock(at: $0) { $0.count } }
        #expect(counts.reduce(0, +) == usage.count)
        let held = (0..<200).filter { isHeld(tier, "\($0)") }
        #expect(held.count == usage.count)
    }
}
