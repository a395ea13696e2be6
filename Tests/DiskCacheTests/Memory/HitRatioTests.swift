// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import DiskCache

/// Hit ratios of the eviction policy, compared with those of an LRU cache.
@Suite(.takesTurns) struct HitRatioTests {
    /// The first half of the requests fills the caches and is not counted. Debug builds, in which each request takes ten times as
    /// long, have fewer requests and smaller caches.
    #if DEBUG
        private static let requests = 200_000
        private static let capacity = 4000
    #else
        private static let requests = 2_000_000
        private static let capacity = 10_000
    #endif
    private static let keys = 10 * capacity

    // MARK: The requests

    /// Numbers from 0, each with a probability in proportion to 1 / (1 + number).
    private struct Zipf {
        private var generator: SeededGenerator
        private let cumulative: [Double]

        init(seed: UInt64) {
            generator = SeededGenerator(seed: seed)
            var sum = 0.0
            cumulative = (1...HitRatioTests.keys).map { rank in
                sum += 1 / Double(rank)
                return sum
            }
        }

        mutating func next() -> Int {
            let target = Double(generator.next() >> 11) * 0x1p-53 * cumulative[cumulative.count - 1]
            var (low, high) = (0, cumulative.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if cumulative[middle] <= target { low = middle + 1 } else { high = middle }
            }
            return low
        }

        mutating func random() -> UInt64 { generator.next() }
    }

    private static func zipf() -> [Int] {
        var zipf = Zipf(seed: 1)
        return (0..<requests).map { _ in zipf.next() }
    }

    /// Returns requests of which a third are scans through separate keys, each as long as a fifth of the number of keys.
    private static func scans() -> [Int] {
        var zipf = Zipf(seed: 2)
        let burst = keys / 5
        var next = keys
        return (0..<requests).map { request in
            guard request / burst % 3 == 2 else { return zipf.next() }
            next += 1
            return keys + next % (keys * 5)
        }
    }

    private static func oneHitWonders() -> [Int] {
        var zipf = Zipf(seed: 3)
        return (0..<requests).map { zipf.random() % 10 < 3 ? keys + $0 : zipf.next() }
    }

    /// Every 50 requests each key becomes one rank more popular, and the most popular one the least popular.
    private static func drift() -> [Int] {
        var zipf = Zipf(seed: 4)
        return (0..<requests).map { (zipf.next() + $0 / 50) % keys }
    }

    private static func loop() -> [Int] {
        (0..<requests).map { $0 % (capacity * 6 / 5) }
    }

    // MARK: The caches

    private static func isCounted(_ number: Int, of requests: [Int]) -> Bool {
        number >= requests.count / 2
    }

    private static func leastRecentlyUsed(_ requests: [Int]) -> Double {
        var newer = [Int](repeating: -1, count: (requests.max() ?? 0) + 2)
        var older = newer
        let end = newer.count - 1
        var isHeld = [Bool](repeating: false, count: newer.count)
        (newer[end], older[end]) = (end, end)
        var (count, hits) = (0, 0)
        func unlink(_ key: Int) { (newer[older[key]], older[newer[key]]) = (newer[key], older[key]) }
        for (number, key) in requests.enumerated() {
            if isHeld[key] {
                if isCounted(number, of: requests) { hits += 1 }
                unlink(key)
            } else {
                isHeld[key] = true
                count += 1
                if count > capacity {
                    // The ring's end lies between the newest, its older neighbour, and the oldest.
                    let oldest = newer[end]
                    unlink(oldest)
                    isHeld[oldest] = false
                    count -= 1
                }
            }
            let newest = older[end]
            (newer[newest], older[key], newer[key], older[end]) = (key, newest, end, key)
        }
        return Double(hits) / Double(requests.count - requests.count / 2)
    }

    private static func queues(_ requests: [Int]) -> Double {
        var queues = EvictionQueues<Int>()
        var frequency = [UInt8](repeating: 0, count: (requests.max() ?? 0) + 1)
        var isHeld = [Bool](repeating: false, count: frequency.count)
        var hits = 0
        for (number, key) in requests.enumerated() {
            if isHeld[key] {
                if isCounted(number, of: requests) { hits += 1 }
                frequency[key] = min(3, frequency[key] + 1)
                continue
            }
            if queues.count == capacity {
                guard queues.admits(UInt64(key)) else { continue }
                let victim = queues.evict(for: .count) { key, change in
                    let old = frequency[key]
                    frequency[key] = change(old)
                    return old
                }
                if let victim { isHeld[victim] = false }
            }
            isHeld[key] = true
            frequency[key] = 0
            _ = queues.insert(key, fingerprint: UInt64(key), cost: 1)
        }
        return Double(hits) / Double(requests.count - requests.count / 2)
    }

    private static func tier(_ requests: [Int]) -> Double {
        let tier = MemoryTier(limits: MemoryLimits(cost: capacity, count: .max))
        var hits = 0
        for (number, request) in requests.enumerated() {
            let key = "key \(request)"
            if tier.find(key, at: .distantPast, judge: { _ in nil }) != nil {
                if isCounted(number, of: requests) { hits += 1 }
            } else {
                tier.keep(Token(key), by: MemoryValidity())
            }
        }
        return Double(hits) / Double(requests.count - requests.count / 2)
    }

    // MARK: The ratios

    @Test func `the queues and the tier beat LRU by four points on a Zipf distribution`() {
        let requests = Self.zipf()
        let least = Self.leastRecentlyUsed(requests)
        let (queues, tier) = (Self.queues(requests), Self.tier(requests))
        #expect(queues >= least + 0.04)
        #expect(tier >= least + 0.04)
        // The policy is the same; only the order of fingerprints in a hash table may differ.
        #expect(abs(queues - tier) < 0.001)
    }

    @Test func `the queues beat LRU by four points if a third of the requests are scans`() {
        let requests = Self.scans()
        let (least, queues) = (Self.leastRecentlyUsed(requests), Self.queues(requests))
        #expect(queues >= least + 0.04)
    }

    @Test func `the queues beat LRU by four points if 30 % of the requests are for keys used once`() {
        let requests = Self.oneHitWonders()
        let (least, queues) = (Self.leastRecentlyUsed(requests), Self.queues(requests))
        #expect(queues >= least + 0.04)
    }

    @Test func `the queues are at most two points below LRU if popularity drifts`() {
        let requests = Self.drift()
        let (least, queues) = (Self.leastRecentlyUsed(requests), Self.queues(requests))
        #expect(queues >= least - 0.02)
    }

    @Test func `a loop a fifth longer than the cache hits more than half of the time`() {
        let requests = Self.loop()
        #expect(Self.leastRecentlyUsed(requests) == 0)
        #expect(Self.queues(requests) > 0.5)
        #expect(Self.tier(requests) > 0.5)
    }
}

/// A value without content.
final class Token: MemoryEntry, @unchecked Sendable {
    init(_ key: String, cost: Int = 1, form: ObjectIdentifier = MemoryEntry.bytes) {
        super.init(key: key, in: .callers, form: form, cost: cost)
    }
}

// The key space makes no difference to the policy.
extension MemoryTier {
    func find(
        _ key: String,
        _ form: ObjectIdentifier = MemoryEntry.bytes,
        at now: Timestamp,
        judge: (MemoryEntry) -> MemoryRemovalCause?
    ) -> MemoryEntry? { find(key, in: .callers, form, at: now, judge: judge) }

    func remove(_ key: String, cause: MemoryRemovalCause = .explicit) {
        remove(key, in: .callers, cause: cause)
    }
}
