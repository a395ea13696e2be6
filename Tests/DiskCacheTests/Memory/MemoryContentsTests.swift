// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct MemoryContentsTests {
    let log = RemovalLog()

    private func moment(_ seconds: Int64) -> Timestamp { Timestamp(nanoseconds: seconds * 1_000_000_000) }

    @Test func `expired values are removed, with a pause between two scans`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: 100, count: 10), onRemoval: log.add)
        // Values of one key are in one shard.
        let forms = [MemoryEntry.bytes, ObjectIdentifier(Token.self), ObjectIdentifier(RemovalLog.self)]
        for (form, end) in zip(forms, [moment(10), moment(12), nil]) {
            tier.keep(Token("key", form: form), by: MemoryValidity(heldUntil: end))
        }
        func left(at seconds: Int64) -> Int {
            tier.removeExpired(at: moment(seconds))
            return tier.usage.count
        }
        #expect(left(at: 9) == 3)
        #expect(left(at: 10) == 2)
        #expect(left(at: 12) == 2, "it was looked for 2 s ago")
        #expect(left(at: 26) == 1)
        // The clock is set back, so scans at later times do not count.
        tier.keep(Token("key"), by: MemoryValidity(heldUntil: moment(5)))
        #expect(left(at: 5) == 1)
        #expect(log.causes == [.expired, .expired, .expired])
        tier.removeAll()
        #expect(left(at: 1000) == 0)
    }

    @Test func `many expired values are removed, and the others are still found`() {
        let tier = MemoryTier(limits: MemoryLimits(cost: .max, count: .max), onRemoval: log.add)
        for number in 0..<3000 {
            let end = number % 3 == 0 ? moment(10) : nil
            tier.keep(Token("\(number)"), by: MemoryValidity(heldUntil: end))
        }
        tier.removeExpired(at: moment(10))
        #expect(tier.usage == (2000, 2000))
        for number in 0..<3000 {
            let isThere = tier.find("\(number)", at: .distantPast) { _ in nil } != nil
            #expect(isThere == (number % 3 != 0))
        }
        #expect(log.causes.count == 1000)
    }

    @Test func `the keys in memory are listed once each and compared by their bytes`() throws {
        let fixture = try CacheFixture { $0.memory = CacheConfiguration.Memory() }
        let cache = fixture.cache
        #expect(cache.memory.keys.isEmpty)
        try cache.put("\"a\"", forKey: "a")
        _ = try cache.typed(String.self).get(forKey: "a")
        #expect(cache.memory.count == 2)
        #expect(cache.memory.keys == ["a"])
        for key in ["caf\u{e9}", "cafe\u{301}"] { try cache.put("b", forKey: key) }
        #expect(cache.memory.keys.map { Array($0.utf8).count } == [1, 5, 6])
        try cache.remove(forKey: "a")
        #expect(cache.memory.keys.count == 2)
        cache.close()
        let none = try CacheFixture()
        #expect(none.cache.memory.keys.isEmpty)
    }

    @Test(arguments: [false, true])
    func `events carry the removed value if configured`(isAskedFor: Bool) throws {
        let values = Locked<[(any Sendable)?]>([])
        let fixture = try CacheFixture {
            $0.memory = CacheConfiguration.Memory()
            $0.memory.eventsCarryValues = isAskedFor
            $0.onEvent = { event in
                guard case .removedFromMemory("key", .explicit, _, let value) = event else { return }
                values.withLock { $0.append(value) }
            }
        }
        let cache = fixture.cache
        try cache.put("\"text\"", forKey: "key")
        _ = try cache.typed(String.self).get(forKey: "key")
        try cache.remove(forKey: "key")
        let found = values.withLock { $0 }
        #expect(found.count == 2)
        #expect(found.contains { $0 as? Data == Data("\"text\"".utf8) } == isAskedFor)
        #expect(found.contains { $0 as? String == "text" } == isAskedFor)
    }
}
