// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

/// Gathers what a tier says of removals.
final class RemovalLog: Sendable {
    private let list = Locked<[MemoryRemoval]>([])

    func add(_ removal: MemoryRemoval) { list.withLock { $0.append(removal) } }
    var removals: [MemoryRemoval] { list.withLock { $0 } }
    var causes: [RemovalCause] { removals.map(\.cause) }
    var keys: [String] { removals.map(\.key) }
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
        form: MemoryForm = .bytes
    ) -> MemoryAdmission {
        tier.insert(Token(), forKey: key, form: form, cost: cost, stamp: MemoryStamp())
    }

    private func isHeld(_ tier: MemoryTier, _ key: String, form: MemoryForm = .bytes) -> Bool {
        tier.value(forKey: key, form: form) { _, _ in .valid } != nil
    }

    @Test func `a value is given out as the same object until it is removed`() {
        let tier = makeTier()
        let token = Token()
        tier.insert(token, forKey: "key", cost: 7, stamp: MemoryStamp())
        #expect(tier.value(forKey: "key") { _, _ in .valid } === token)
        #expect(tier.usage == (7, 1))
        tier.remove("key")
        #expect(!isHeld(tier, "key"))
        #expect(tier.usage == (0, 0))
        #expect(log.causes == [.explicit])
        tier.remove("key")
        #expect(log.causes == [.explicit])
    }

    @Test func `the coarse clock decides but in the last second, and not without a generation`() {
        func stamp(_ end: Int64?, accessDue: Int64 = .max) -> MemoryStamp {
            MemoryStamp(
                generation: Generation(index: 0, word: 0),
                heldUntil: end.map { Timestamp(nanoseconds: $0) },
                accessDue: Timestamp(nanoseconds: accessDue)
            )
        }
        let second: Int64 = 1_000_000_000
        #expect(stamp(nil).due == .distantFuture)
        #expect(stamp(5 * second).due == Timestamp(nanoseconds: 4 * second))
        #expect(stamp(nil, accessDue: 7).due == Timestamp(nanoseconds: 7))
        #expect(stamp(5 * second, accessDue: 7).due == Timestamp(nanoseconds: 7))
        #expect(stamp(5 * second, accessDue: 9 * second).due == Timestamp(nanoseconds: 4 * second))
        #expect(stamp(.min).due == .distantPast)
        #expect(MemoryStamp().due == .distantPast)
        for now in [4 * second - 1, 4 * second] {
            let now = Timestamp(nanoseconds: now)
            #expect(stamp(5 * second).isBeforeEnd(now) == (now < stamp(5 * second).due))
        }
    }

    @Test func `what nobody can vouch for has to be judged`() {
        let tier = makeTier()
        func find(_ key: String) -> String { "\(tier.settledValue(forKey: key, .bytes, at: .distantPast))" }
        #expect(put(tier, "key") == .admitted)
        // Neither a store nor a generation.
        #expect(find("key") == "unsettled")
        #expect(find("other") == "absent")
        #expect(tier.hits == 0)
    }

    @Test func `a hash may be any number`() {
        var shard = MemoryShard()
        let seed = HashSeed()
        let keys = ["one", "two", "three"]
        let bytes = keys.map { key in
            var bytes = KeyBytes(key, seed)
            bytes.hash = 1 << 63
            return bytes
        }
        var queues = EvictionQueues<MemoryPlace>()
        for number in 0..<3 {
            let place = MemoryPlace(shard: 0, slot: Int32(number))
            let details = MemoryShard.Details(
                hash: bytes[number].hash,
                key: keys[number],
                form: .bytes,
                stamp: MemoryStamp(),
                serial: UInt64(number),
                handle: queues.insert(place, fingerprint: 0, cost: 1, queue: nil),
                isDiscardable: false
            )
            let content = MemoryShard.Content(
                bytes: bytes[number],
                item: Token(),
                frequency: 0,
                details: details
            )
            shard.fill(shard.nextSlot, with: content)
        }
        #expect(shard.clear(0) != nil)
        let places = (0..<3).map { shard.find(bytes[$0], keys[$0], .bytes) }
        #expect(places == [nil, 1, 2])
    }

    @Test func `keys that are canonically equal but differ in bytes are two`() {
        let tier = makeTier()
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        #expect(composed == decomposed)
        #expect(put(tier, composed) == .admitted)
        #expect(!isHeld(tier, decomposed))
        #expect(put(tier, decomposed) == .admitted)
        #expect(tier.usage.count == 2)
        tier.remove(composed)
        #expect(isHeld(tier, decomposed))
    }

    @Test func `forms of one key are apart, and are removed together`() {
        let tier = makeTier()
        let view = MemoryForm.decoded(ObjectIdentifier(Token.self))
        #expect(put(tier, "key") == .admitted)
        #expect(!isHeld(tier, "key", form: view))
        #expect(put(tier, "key", form: view) == .admitted)
        #expect(put(tier, "other") == .admitted)
        tier.remove("key", cause: .invalidated)
        #expect(!isHeld(tier, "key") && !isHeld(tier, "key", form: view))
        #expect(isHeld(tier, "other"))
        #expect(log.causes == [.invalidated, .invalidated])
    }

    @Test func `a new value replaces the old one, also where it is not admitted itself`() {
        let tier = makeTier(cost: 100)
        #expect(put(tier, "key", cost: 3) == .admitted)
        #expect(put(tier, "key", cost: 5) == .admitted)
        #expect(tier.usage == (5, 1))
        #expect(put(tier, "key", cost: 26) == .oversized)
        #expect(tier.usage == (0, 0))
        #expect(log.causes == [.replaced, .replaced])
        #expect(log.removals.map(\.cost) == [3, 5])
    }

    @Test func `what is judged expired or invalidated is removed with that cause`() {
        let tier = makeTier()
        for key in ["a", "b"] { #expect(put(tier, key) == .admitted) }
        #expect(tier.value(forKey: "a") { _, _ in .expired } == nil)
        #expect(tier.value(forKey: "b") { _, _ in .invalidated } == nil)
        #expect(tier.value(forKey: "c") { _, _ in .expired } == nil)
        #expect(log.keys == ["a", "b"])
        #expect(log.causes == [.expired, .invalidated])
        #expect(tier.usage == (0, 0))
    }

    @Test func `the judge sees the stamp and what it changes stays`() {
        let tier = makeTier()
        let stamp = MemoryStamp(heldUntil: Timestamp(nanoseconds: 9), accessDue: Timestamp(nanoseconds: 1))
        tier.insert(Token(), forKey: "key", cost: 1, stamp: stamp)
        for due in [1, 2] as [Int64] {
            var seen: MemoryStamp?
            _ = tier.value(forKey: "key") { _, stamp in
                seen = stamp
                stamp.accessDue = Timestamp(nanoseconds: 2)
                return .valid
            }
            #expect(seen?.accessDue == Timestamp(nanoseconds: due))
            #expect(seen?.end == Timestamp(nanoseconds: 9))
        }
    }

    @Test(arguments: [1, 2, 10]) func `a few values are held as well as many`(count: Int) {
        let tier = makeTier(count: count)
        for number in 0..<100 {
            #expect(put(tier, "\(number)") == .admitted)
            #expect(isHeld(tier, "\(number)"), "what just came is there")
            #expect(tier.usage.count == min(count, number + 1))
        }
        #expect(log.removals.count == 100 - count)
        #expect(log.causes.allSatisfy { $0 == .count })
    }

    @Test func `one that is in use stays among passers-by in a tier of two`() {
        let tier = makeTier(count: 2)
        #expect(put(tier, "hot") == .admitted)
        for number in 0..<100 {
            #expect(isHeld(tier, "hot"))
            #expect(isHeld(tier, "hot"))
            #expect(put(tier, "\(number)") == .admitted)
        }
    }

    @Test func `the cost is never more than the limit`() {
        let tier = makeTier(cost: 100)
        for number in 0..<1000 {
            #expect(put(tier, "\(number)", cost: number * 7 % 26) == .admitted)
            #expect(tier.usage.cost <= 100)
        }
        #expect(log.causes.allSatisfy { $0 == .cost })
        #expect(
            tier.usage.cost + log.removals.reduce(0) { $0 + $1.cost }
                == (0..<1000).reduce(0) { $0 + $1 * 7 % 26 }
        )
    }

    @Test
    func `more than a quarter of the limit is not admitted, nor anything where there is no room at all`() {
        #expect(put(makeTier(cost: 100), "key", cost: 25) == .admitted)
        #expect(put(makeTier(cost: 100), "key", cost: 26) == .oversized)
        #expect(put(makeTier(cost: 0), "key") == .oversized)
        #expect(put(makeTier(count: 0), "key", cost: 0) == .oversized)
        #expect(put(makeTier(), "key", cost: .max) == .admitted)
    }

    @Test func `costs near the largest number do not overflow`() {
        let tier = makeTier()
        #expect(put(tier, "a", cost: .max - 1) == .admitted)
        #expect(put(tier, "b", cost: .max - 1) == .admitted)
        #expect(put(tier, "c", cost: -5) == .admitted)
        #expect(tier.usage == (.max - 1, 2))
    }

    @Test func `a removal is told with no lock held and the value goes with it`() {
        let box = Locked<MemoryTier?>.Box(nil)
        let calls = Locked.Box(0)
        let tier = MemoryTier(limits: MemoryLimits(cost: .max, count: 1)) { removal in
            // Would wait for ever if a lock were held.
            _ = box.value.withLock { $0 }?.usage
            _ = box.value.withLock { $0 }?.value(forKey: removal.key) { _, _ in .valid }
            calls.value.withLock { $0 += 1 }
        }
        box.value.withLock { $0 = tier }
        weak var gone: Token?
        do {
            let token = Token()
            gone = token
            tier.insert(token, forKey: "a", cost: 1, stamp: MemoryStamp())
        }
        #expect(gone != nil)
        #expect(put(tier, "b") == .admitted)
        #expect(gone == nil)
        #expect(calls.value.withLock { $0 } == 1)
        box.value.withLock { $0 = nil }
    }
}

@Suite(.takesTurns) struct MemoryShardTests {
    private let seed = HashSeed()

    /// As if the key had this hash.
    private func bytes(_ key: String, _ hash: UInt64) -> KeyBytes {
        var bytes = KeyBytes(key, seed)
        bytes.hash = hash
        return bytes
    }

    private func content(
        _ key: String,
        _ hash: UInt64,
        form: MemoryForm = .bytes,
        stamp: MemoryStamp = MemoryStamp()
    ) -> MemoryShard.Content {
        let details = MemoryShard.Details(
            hash: hash,
            key: key,
            form: form,
            stamp: stamp,
            serial: 0,
            handle: 0,
            isDiscardable: false
        )
        return MemoryShard.Content(bytes: bytes(key, hash), item: Token(), frequency: 0, details: details)
    }

    @Test func `keys of one hash are told apart, in whatever order they come and go`() {
        var shard = MemoryShard()
        for number in 0..<40 { shard.fill(shard.nextSlot, with: content("\(number)", 7)) }
        for number in stride(from: 0, to: 40, by: 3) {
            guard let place = shard.find(bytes("\(number)", 7), "\(number)", .bytes) else {
                Issue.record("\(number) is gone")
                continue
            }
            #expect(shard.clear(place)?.details.key == "\(number)")
        }
        for number in 0..<40 {
            #expect(
                (shard.find(bytes("\(number)", 7), "\(number)", .bytes) == nil) == (number % 3 == 0),
                "\(number)"
            )
        }
        #expect(shard.count == 26)
    }

    @Test func `keys that begin alike, or differ in their length only, are told apart`() {
        var shard = MemoryShard()
        let long = String(repeating: "k", count: 32)
        let keys = ["k", "k\0", "k\0\0", "", "\0", long, long + "a", long + "b", long + "\0", long + long]
        for key in keys { shard.fill(shard.nextSlot, with: content(key, 7)) }
        for key in keys {
            let place = shard.find(bytes(key, 7), key, .bytes)
            #expect(place.flatMap { shard.clear($0) }?.details.key == key)
            #expect(shard.find(bytes(key, 7), key, .bytes) == nil)
        }
    }

    @Test func `what belongs to another mapping than the latest has to be judged, each time`() {
        var shard = MemoryShard()
        for (number, mapping) in [UInt(1), 2, 2, 1].enumerated() {
            let stamp = MemoryStamp(generation: Generation(index: 0, word: 0, mapping: mapping))
            shard.fill(number, with: content("\(number)", 7, stamp: stamp))
        }
        func due() -> [Bool] {
            (0..<4).map { number in shard.update(number) { slot, _ in slot.due == .distantPast } }
        }
        #expect(due() == [true, true, true, false])
        for number in 0..<4 { shard.judge(number) { _, _ in } }
        // The latest mapping is 1 again.
        #expect(due() == [false, true, true, false])
        shard.discard(0, for: Token(), isDiscardable: false)
        #expect(due() == [true, true, true, false])
        shard.judge(0) { _, _ in }
        #expect(due() == [true, true, true, false])
    }

    @Test func `a slot takes one cache line, an address a quarter of one`() {
        #expect(MemoryLayout<MemoryShard.Address>.stride == 16)
        #expect(MemoryLayout<MemoryShard.Slot>.stride == 64)
    }

    @Test func `any mixture of homes stays findable when others leave`() {
        var shard = MemoryShard()
        var held: [Int: UInt64] = [:]
        for step in 0..<5000 {
            let number = step &* 7919 % 61
            // Homes close to each other and around the end of the table.
            let hash = UInt64(bitPattern: Int64(number % 5 - 2))
            if held.removeValue(forKey: number) != nil {
                let place = shard.find(bytes("\(number)", hash), "\(number)", .bytes)
                let cleared = place.flatMap { shard.clear($0) }
                #expect(cleared != nil)
            } else if step % 3 != 0 {
                held[number] = hash
                shard.fill(shard.nextSlot, with: content("\(number)", hash))
            }
            for (number, hash) in held where shard.find(bytes("\(number)", hash), "\(number)", .bytes) == nil
            {
                Issue.record("\(number) is lost at step \(step)")
                return
            }
            #expect(shard.count == held.count)
        }
    }
}
