// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

/// A log of the removals that a tier reports.
final class RemovalLog: Sendable {
    private let list = Locked<MemoryTier.Removals>([])

    func add(_ item: MemoryEntry, _ cause: MemoryRemovalCause) {
        list.withLock { $0.append((item, cause)) }
    }
    var removals: MemoryTier.Removals { list.withLock { $0 } }
    var causes: [MemoryRemovalCause] { removals.map(\.cause) }
    var keys: [String] { removals.map(\.item.key) }
}

@Suite(.takesTurns) struct MemoryTierTests {
    let log = RemovalLog()

    private func makeTier(cost: Int = .max, count: Int = .max) -> MemoryTier {
        MemoryTier(limits: MemoryLimits(cost: cost, count: count), onRemoval: log.add)
    }

    private func put(
        _ tier: MemoryTier,
        _ key: String,
        cost: Int = 1,
        form: ObjectIdentifier = MemoryEntry.bytes
    ) -> Bool {
        tier.keep(Token(key, cost: cost, form: form), by: MemoryValidity())
    }

    private func isHeld(
        _ tier: MemoryTier,
        _ key: String,
        form: ObjectIdentifier = MemoryEntry.bytes
    ) -> Bool {
        tier.find(key, form, at: .distantPast) { _ in nil } != nil
    }

    @Test func `a value is returned as the same object until it is removed`() {
        let tier = makeTier()
        let token = Token("key", cost: 7)
        tier.keep(token, by: MemoryValidity())
        #expect(tier.find("key", at: .distantPast) { _ in nil } === token)
        #expect(tier.usage == (7, 1))
        tier.remove("key")
        #expect(!isHeld(tier, "key"))
        #expect(tier.usage == (0, 0))
        #expect(log.causes == [.explicit])
        tier.remove("key")
        #expect(log.causes == [.explicit])
    }

    @Test func `the coarse clock is used except in the last second or without a generation`() {
        func validity(_ end: Int64?, accessDue: Int64 = .max) -> MemoryValidity {
            MemoryValidity(
                generation: Generation(index: 0, word: 0),
                heldUntil: end.map { Timestamp(nanoseconds: $0) },
                accessDue: Timestamp(nanoseconds: accessDue)
            )
        }
        let second: Int64 = 1_000_000_000
        #expect(validity(nil).due == .distantFuture)
        #expect(validity(5 * second).due == Timestamp(nanoseconds: 4 * second))
        #expect(validity(nil, accessDue: 7).due == Timestamp(nanoseconds: 7))
        #expect(validity(5 * second, accessDue: 7).due == Timestamp(nanoseconds: 7))
        #expect(validity(5 * second, accessDue: 9 * second).due == Timestamp(nanoseconds: 4 * second))
        #expect(validity(.min).due == .distantPast)
        #expect(MemoryValidity().due == .distantPast)
        for now in [4 * second - 1, 4 * second] {
            let now = Timestamp(nanoseconds: now)
            #expect(validity(5 * second).isBeforeEnd(now) == (now < validity(5 * second).due))
        }
    }

    /// Simulates a caller that has read the limits and is delayed before it admits the value.
    @Test func `a value admitted while the maximum age changes expires by the new one`() {
        let tier = makeTier()
        let created = Timestamp(nanoseconds: 1_700_000_000_000_000_000)
        let record = Record(content: Content(of: [1].span), created: created)
        let value = MemoryValue(
            [UInt8](),
            key: "key",
            in: .callers,
            form: MemoryEntry.bytes,
            record: record,
            cost: 1
        )
        tier.limitAge(to: 10_000_000_000)
        tier.keep(value, by: MemoryValidity(), isOnly: false, upToAge: .max)
        #expect(value.validity.end == created + .seconds(10))
    }

    @Test func `a value without a generation must be judged`() {
        let tier = makeTier()
        var judged: [String] = []
        #expect(put(tier, "key"))
        // The validity has no generation, and the tier has no store.
        for key in ["key", "other"] {
            _ = tier.find(key, at: .distantPast) { item in
                judged.append(item.key)
                return nil
            }
        }
        #expect(judged == ["key"])
        #expect(tier.hits == 0)
    }

    @Test func `canonically equal keys with different bytes are distinct`() {
        let tier = makeTier()
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        #expect(composed == decomposed)
        #expect(put(tier, composed))
        #expect(!isHeld(tier, decomposed))
        #expect(put(tier, decomposed))
        #expect(tier.usage.count == 2)
        tier.remove(composed)
        #expect(isHeld(tier, decomposed))
    }

    @Test func `forms of one key are separate and are removed together`() {
        let tier = makeTier()
        let view = ObjectIdentifier(Token.self)
        #expect(put(tier, "key"))
        #expect(!isHeld(tier, "key", form: view))
        #expect(put(tier, "key", form: view))
        #expect(put(tier, "other"))
        tier.remove("key", cause: .invalidated)
        #expect(!isHeld(tier, "key") && !isHeld(tier, "key", form: view))
        #expect(isHeld(tier, "other"))
        #expect(log.causes == [.invalidated, .invalidated])
    }

    @Test func `a new value replaces the old one even if it is not admitted itself`() {
        let tier = makeTier(cost: 100)
        #expect(put(tier, "key", cost: 3))
        #expect(put(tier, "key", cost: 5))
        #expect(tier.usage == (5, 1))
        #expect(!put(tier, "key", cost: 26))
        #expect(tier.usage == (0, 0))
        #expect(log.causes == [.replaced, .replaced])
        #expect(log.removals.map(\.item.cost) == [3, 5])
    }

    @Test func `a value judged expired or invalidated is removed with that cause`() {
        let tier = makeTier()
        for key in ["a", "b"] { #expect(put(tier, key)) }
        #expect(tier.find("a", at: .distantPast) { _ in .expired } == nil)
        #expect(tier.find("b", at: .distantPast) { _ in .invalidated } == nil)
        #expect(tier.find("c", at: .distantPast) { _ in .expired } == nil)
        #expect(log.keys == ["a", "b"])
        #expect(log.causes == [.expired, .invalidated])
        #expect(tier.usage == (0, 0))
    }

    @Test func `the judge sees how long a value is valid, and its changes persist`() {
        let tier = makeTier()
        let validity = MemoryValidity(
            heldUntil: Timestamp(nanoseconds: 9),
            accessDue: Timestamp(nanoseconds: 1)
        )
        tier.keep(Token("key"), by: validity)
        for due in [1, 2] as [Int64] {
            var seen: MemoryValidity?
            _ = tier.find("key", at: .distantPast) { item in
                seen = item.validity
                item.validity.accessDue = Timestamp(nanoseconds: 2)
                return nil
            }
            #expect(seen?.accessDue == Timestamp(nanoseconds: due))
            #expect(seen?.end == Timestamp(nanoseconds: 9))
        }
    }

    @Test(arguments: [1, 2, 10]) func `small count limits are exact, and a new value is held`(count: Int) {
        let tier = makeTier(count: count)
        for number in 0..<100 {
            #expect(put(tier, "\(number)"))
            #expect(isHeld(tier, "\(number)"), "what just came is there")
            #expect(tier.usage.count == min(count, number + 1))
        }
        #expect(log.removals.count == 100 - count)
        #expect(log.causes.allSatisfy { $0 == .count })
    }

    @Test func `a value in use stays in a tier of two despite many newcomers`() {
        let tier = makeTier(count: 2)
        #expect(put(tier, "hot"))
        for number in 0..<100 {
            #expect(isHeld(tier, "hot"))
            #expect(isHeld(tier, "hot"))
            #expect(put(tier, "\(number)"))
        }
    }

    @Test func `the cost never exceeds the limit`() {
        let tier = makeTier(cost: 100)
        for number in 0..<1000 {
            #expect(put(tier, "\(number)", cost: number * 7 % 26))
            #expect(tier.usage.cost <= 100)
        }
        #expect(log.causes.allSatisfy { $0 == .cost })
        #expect(
            tier.usage.cost + log.removals.reduce(0) { $0 + $1.item.cost }
                == (0..<1000).reduce(0) { $0 + $1 * 7 % 26 }
        )
    }

    @Test
    func `a value above a quarter of the limit is not admitted, nor any at a limit of zero`() {
        #expect(put(makeTier(cost: 100), "key", cost: 25))
        #expect(!put(makeTier(cost: 100), "key", cost: 26))
        #expect(!put(makeTier(cost: 0), "key"))
        #expect(!put(makeTier(count: 0), "key", cost: 0))
        #expect(put(makeTier(), "key", cost: .max))
    }

    @Test func `costs near the largest number do not overflow`() {
        let tier = makeTier()
        #expect(put(tier, "a", cost: .max - 1))
        #expect(put(tier, "b", cost: .max - 1))
        #expect(put(tier, "c", cost: -5))
        #expect(tier.usage == (.max - 1, 2))
    }

    @Test func `a removal is reported without a lock held, and the value is released`() {
        let box = Locked<MemoryTier?>.Box(nil)
        let calls = Locked.Box(0)
        let tier = MemoryTier(limits: MemoryLimits(cost: .max, count: 1)) { item, _ in
            // These would deadlock if a lock were held.
            _ = box.value.withLock { $0 }?.usage
            _ = box.value.withLock { $0 }?.find(item.key, at: .distantPast) { _ in nil }
            calls.value.withLock { $0 += 1 }
        }
        box.value.withLock { $0 = tier }
        weak var gone: Token?
        do {
            let token = Token("a")
            gone = token
            tier.keep(token, by: MemoryValidity())
        }
        #expect(gone != nil)
        #expect(put(tier, "b"))
        #expect(gone == nil)
        #expect(calls.value.withLock { $0 } == 1)
        box.value.withLock { $0 = nil }
    }
}

@Suite(.takesTurns) struct MemoryShardTests {
    private let seed = HashSeed()

    /// Returns the key's name with the given hash.
    private func name(_ key: String, _ hash: UInt64) -> KeyBytes {
        var name = KeyBytes(key, seed)
        name.hash = hash
        return name
    }

    private func item(_ key: String, _ hash: UInt64) -> Token {
        let item = Token(key)
        item.name = name(key, hash)
        return item
    }

    @Test func `keys with the same hash are distinguished in any order of insertion and removal`() {
        var shard = MemoryShard()
        let items = (0..<40).map { item("\($0)", 7) }
        for item in items { shard.add(item) }
        for number in stride(from: 0, to: 40, by: 3) {
            let taken = shard.take(name("\(number)", 7), "\(number)", MemoryEntry.bytes)
            #expect(taken === items[number])
        }
        for number in 0..<40 {
            let isHeld = shard.contains(name("\(number)", 7), "\(number)")
            #expect(isHeld == (number % 3 != 0), "\(number)")
        }
        #expect(shard.count == 26)
    }

    @Test func `a hash may be any number`() {
        var shard = MemoryShard()
        let items = ["one", "two", "three"].map { item($0, .max - 1 << 63) }
        for item in items { shard.add(item) }
        let isRemoved = shard.remove(items[0])
        #expect(isRemoved)
        let held = items.map { shard.contains($0.name, $0.key) }
        #expect(held == [false, true, true])
    }

    @Test func `keys with a common prefix or different lengths only are distinguished`() {
        var shard = MemoryShard()
        let long = String(repeating: "k", count: 32)
        let keys = ["k", "k\0", "k\0\0", "", "\0", long, long + "a", long + "b", long + "\0", long + long]
        let items = keys.map { item($0, 7) }
        for item in items { shard.add(item) }
        for (key, item) in zip(keys, items) {
            let taken = shard.take(name(key, 7), key, MemoryEntry.bytes)
            #expect(taken === item)
            let isHeld = shard.contains(name(key, 7), key)
            #expect(!isHeld)
        }
    }

    /// A value that has discarded a part.
    private final class Lesser: MemoryEntry, @unchecked Sendable {
        override var isWhole: Bool { false }
    }

    @Test func `a lesser form replaces its item and must be judged from then on`() {
        var shard = MemoryShard()
        let whole = item("key", 7)
        whole.validity = MemoryValidity(generation: Generation(index: 0, word: 0))
        #expect(whole.due == .distantFuture)
        shard.add(whole)
        let lesser = Lesser(key: "key", in: .callers, form: MemoryEntry.bytes, cost: 1)
        let isReplaced = [shard.replace(whole, by: lesser), shard.replace(whole, by: lesser)]
        #expect(isReplaced == [true, false])
        #expect(lesser.validity == whole.validity && lesser.due == .distantPast)
        let taken = shard.take(whole.name, "key", nil)
        #expect(taken === lesser)
    }

    @Test func `items with any mixture of home slots stay findable after removals`() {
        var shard = MemoryShard()
        var held: [Int: MemoryEntry] = [:]
        for step in 0..<5000 {
            let number = step &* 7919 % 61
            // Home slots close to each other and around the end of the table.
            let hash = UInt64(bitPattern: Int64(number % 5 - 2))
            if let item = held.removeValue(forKey: number) {
                let isRemoved = shard.remove(item)
                #expect(isRemoved)
            } else if step % 3 != 0 {
                let item = item("\(number)", hash)
                held[number] = item
                shard.add(item)
            }
            for item in held.values where !shard.contains(item.name, item.key) {
                Issue.record("\(item.key) is lost at step \(step)")
                return
            }
            #expect(shard.count == held.count)
        }
    }
}
