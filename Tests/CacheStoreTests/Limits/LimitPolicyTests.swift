// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import CacheStore
@testable import Platform

@Suite(.takesTurns) struct LimitPolicyTests {
    private func limits(
        size: Int64? = nil,
        entries: Int? = nil,
        free: CacheLimits.FreeSpace? = nil
    ) -> CacheLimits {
        var limits = CacheLimits()
        limits.maximumSize = size.map { ByteCount($0) }
        limits.maximumEntries = entries
        limits.minimumFree = free
        return limits
    }

    private func space(total: Int64, available: Int64, free: Int64? = nil) -> FileSystemSpace {
        FileSystemSpace(
            totalBytes: total,
            availableBytes: available,
            freeBytes: free ?? available,
            totalInodes: 0,
            availableInodes: 0,
            isReadOnly: false,
            accessTimes: .seldom
        )
    }

    @Test func `without limits there is no excess`() {
        #expect(!CacheLimits().areBounding)
        #expect(CacheLimits().excess(of: Occupancy(bytes: .max, entries: .max)) == Excess())
        var ages = CacheLimits()
        ages.maximumAge = .seconds(1)
        #expect(!ages.areBounding)
    }

    @Test func `a limit may be reached but not exceeded`() {
        let limits = limits(size: 1000)
        #expect(limits.excess(of: Occupancy(bytes: 1000, entries: 1)) == Excess())
        let excess = limits.excess(of: Occupancy(bytes: 1001, entries: 1))
        #expect(excess == Excess(size: 1))
    }

    @Test func `the overflow above the high mark reaches down to the low mark`() {
        let limits = limits(size: 1000)
        #expect(limits.overflow(of: Occupancy(bytes: 950, entries: 1)) == nil)
        let overflow = limits.overflow(of: Occupancy(bytes: 951, entries: 1))
        #expect(overflow == Excess(size: 51))
    }

    @Test func `overhead is subtracted from the size limit before the marks are computed`() {
        let limits = limits(size: 1200)
        func overflow(_ bytes: Int64) -> Excess? {
            limits.overflow(of: Occupancy(bytes: bytes, overhead: 200, entries: 1))
        }
        #expect(overflow(950) == nil)
        #expect(overflow(951)?.size == 51)
        #expect(limits.excess(of: Occupancy(bytes: 1001, overhead: 200, entries: 1)).size == 1)
        let full = Occupancy(bytes: 10, overhead: 1300, entries: 1)
        #expect(limits.excess(of: full).size == 110)
        #expect(limits.excess(of: full, over: CacheLimits.roomMark).size == 10, "more than there is can't go")
    }

    @Test func `a put makes room for a hundredth more than it needs, not twice as much`() {
        let limits = limits(free: .percent(10))
        let full = Occupancy(bytes: 500, entries: 5, space: space(total: 10_000, available: 0), claimed: 100)
        #expect(limits.excess(of: full).freeSpace == 1100)
        #expect(limits.excess(of: full, over: CacheLimits.roomMark).freeSpace == 1110)
    }

    @Test func `on a full disk limits are lowered by the requested space`() {
        let excess = Excess(freeSpace: 300)
        let present = Occupancy(bytes: 500, entries: 5, space: space(total: 10_000, available: 20))
        let lowered = limits(size: 1000).lowered(by: excess, from: present)
        #expect(lowered.maximumSize == .bytes(1000) && lowered.minimumFree == .bytes(.bytes(320)))
        let higher = limits(free: .bytes(.bytes(900)))
        #expect(higher.lowered(by: excess, from: present) == higher)
    }

    @Test func `blocks reserved for root are compensated for once they show`() {
        func space(_ available: Int64, free: Int64) -> FileSystemSpace {
            self.space(total: 10_000, available: available, free: free)
        }
        // 500 bytes are reserved, of which 100 are left.
        var goal = FreeSpaceGoal(.percent(10), at: space(0, free: 100))
        #expect(goal.shortfall == 1000)
        // The evicted blocks are freed only later, so nothing new is known.
        goal.learn(space(0, free: 100))
        #expect(goal.shortfall == 1000)
        goal.learn(space(0, free: 400))
        #expect(goal.shortfall == 1300)
        goal.learn(space(600, free: 1100))
        #expect(goal.shortfall == 1400)
        goal.learn(space(1000, free: 1500))
        #expect(goal.shortfall == 1400)
        // If space was available at the start, there is nothing to learn.
        var usual = FreeSpaceGoal(.bytes(.bytes(1000)), at: space(300, free: 800))
        usual.learn(space(0, free: 0))
        #expect(usual.shortfall == 700)
    }

    @Test func `a limit of one entry leaves one entry`() {
        let limits = limits(entries: 1)
        #expect(limits.overflow(of: Occupancy(bytes: 0, entries: 1)) == nil)
        #expect(limits.excess(of: Occupancy(bytes: 0, entries: 2)).entries == 1)
        #expect(limits.lowered(overhead: 0).maximumEntries == 1)
        #expect(self.limits(entries: 10).overflow(of: Occupancy(bytes: 0, entries: 10)) == nil)
        #expect(self.limits(entries: 20).overflow(of: Occupancy(bytes: 0, entries: 20))?.entries == 2)
    }

    @Test func `the excess covers all limits, and the first exceeded one is the reason`() {
        let limits = limits(size: 100, entries: 10, free: .bytes(.bytes(50)))
        let full = Occupancy(bytes: 90, entries: 12, space: space(total: 1000, available: 30))
        let excess = limits.excess(of: full)
        #expect(excess == Excess(entries: 2, freeSpace: 20) && excess.reason == .entries)
        let large = Occupancy(bytes: 130, entries: 12, space: space(total: 1000, available: 30))
        let larger = limits.excess(of: large)
        #expect(larger == Excess(entries: 2, size: 30, freeSpace: 20) && larger.reason == .entries)
        #expect(larger.bytes == 30)
        #expect(Excess(entries: -1, size: 1, freeSpace: 1).reason == .size)
        #expect(Excess(entries: -1, size: -1, freeSpace: 1).reason == .freeSpace)
        #expect(Excess(entries: -1, size: -1, freeSpace: -1).reason == nil)
    }

    @Test(arguments: [CacheLimits.FreeSpace.bytes(.bytes(100)), .percent(10)])
    func `a minimum of free space has its marks above it`(floor: CacheLimits.FreeSpace) {
        let limits = limits(free: floor)
        func overflow(_ available: Int64) -> Excess? {
            limits.overflow(
                of: Occupancy(bytes: 0, entries: 0, space: space(total: 1000, available: available))
            )
        }
        #expect(overflow(105) == nil)
        #expect(overflow(104) == Excess(freeSpace: 6))
        let below = Occupancy(bytes: 0, entries: 0, space: space(total: 1000, available: 99))
        #expect(limits.excess(of: below).freeSpace == 1)
        // Without a query of the file system, the free space is unknown.
        #expect(limits.excess(of: Occupancy(bytes: 0, entries: 0)) == Excess())
    }

    @Test func `lowered limits are at the low mark`() {
        let lowered = limits(size: 1000, entries: 100, free: .percent(10)).lowered(overhead: 200)
        #expect(lowered.maximumSize == .bytes(920) && lowered.maximumEntries == 90)
        guard case .percent(let percent)? = lowered.minimumFree else {
            Issue.record("no share")
            return
        }
        #expect(abs(percent - 11) < 1e-7)
        #expect(limits(free: .percent(99)).lowered(overhead: 0).minimumFree == .percent(100))
    }
}
