// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct RecordTests {
    let start = Timestamp(nanoseconds: 1_700_000_000_000_000_000)

    private func record(
        lives lifetime: Duration?,
        idle: Duration? = nil,
        stale: Duration? = nil
    ) -> Record {
        var record = Record(content: Content(of: [UInt8]().span), created: start)
        record.expires = lifetime.map { start + $0 }
        record.idleLifetime = idle
        record.staleFor = stale
        return record
    }

    @Test func `a value is fresh until the instant of its expiration`() {
        let record = record(lives: .seconds(10))
        let last = start + .nanoseconds(9_999_999_999)
        #expect(record.freshness(at: last, accessed: start) == .fresh)
        #expect(record.freshness(at: start + .seconds(10), accessed: start) == .expired)
    }

    @Test func `a value without an expiration is fresh forever`() {
        #expect(record(lives: nil).freshness(at: .distantFuture, accessed: start) == .fresh)
    }

    @Test func `an access extends only a sliding expiration`() {
        let accessed = start + .seconds(8)
        let now = start + .seconds(12)
        #expect(record(lives: .seconds(10)).freshness(at: now, accessed: accessed) == .expired)
        let sliding = record(lives: .seconds(10), idle: .seconds(10))
        #expect(sliding.freshness(at: now, accessed: accessed) == .fresh)
        #expect(sliding.freshness(at: start + .seconds(18), accessed: accessed) == .expired)
    }

    @Test func `a short extension never shortens a lifetime`() {
        let record = record(lives: .seconds(100), idle: .seconds(1))
        #expect(record.freshness(at: start + .seconds(50), accessed: start + .seconds(2)) == .fresh)
    }

    @Test func `an access before the write or in the future extends nothing`() {
        let record = record(lives: .seconds(10), idle: .seconds(10))
        let now = start + .seconds(11)
        #expect(record.freshness(at: now, accessed: start - .seconds(1)) == .expired)
        #expect(record.freshness(at: now, accessed: start + .seconds(112)) == .expired)
    }

    @Test func `the stale period follows the expiration`() {
        let record = record(lives: .seconds(10), idle: .seconds(10), stale: .seconds(5))
        #expect(record.freshness(at: start + .seconds(14), accessed: start) == .stale)
        #expect(record.freshness(at: start + .seconds(15), accessed: start) == .expired)
        #expect(record.freshness(at: start + .seconds(22), accessed: start + .seconds(8)) == .stale)
        #expect(record.freshness(at: start + .seconds(23), accessed: start + .seconds(8)) == .expired)
    }

    @Test func `the last use is the later of the write and the access`() {
        let record = record(lives: nil)
        let now = start + .seconds(100)
        #expect(record.lastUse(accessed: start - .seconds(5), now: now) == start)
        #expect(record.lastUse(accessed: start + .seconds(5), now: now) == start + .seconds(5))
        #expect(record.lastUse(accessed: now + .seconds(500), now: now) == start)
    }
}
