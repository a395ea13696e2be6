// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct StoreCountersTests {
    let fixture: StoreFixture
    let other: Store

    init() throws {
        fixture = try StoreFixture()
        other = try StoreFixture.open(fixture.path)
    }

    @Test func `every event has its own place in the file`() {
        let places = StoreCounters.Event.allCases.map(\.rawValue)
        #expect(Set(places).count == places.count)
        #expect(places.allSatisfy { (0..<ControlLayout.counterSlots).contains($0) })
        // These numbers are on disk.
        #expect(StoreCounters.Event.miss.rawValue == 3)
        #expect(StoreCounters.Event.computation.rawValue == 8)
        #expect(StoreCounters.Event.corruptRecord.rawValue == 16)
        #expect(StoreCounters.Event.sweptSize.rawValue == 41)
        #expect(StoreCounters.Event.memoryPressure.rawValue == 54)
    }

    @Test func `counts of processes are added up and outlive them`() throws {
        try fixture.put("value", "key")
        _ = try other.get(Digest(ofKey: "key"), now: .now, allowingStale: false)
        _ = try other.get(Digest(ofKey: "absent"), now: .now, allowingStale: false)
        #expect(fixture.store.counters[.put] == 1 && fixture.store.counters[.hit] == 0)
        #expect(other.counters[.put] == 0 && other.counters[.hit] == 1 && other.counters[.miss] == 1)
        let third = try StoreFixture.open(fixture.path)
        let all = try #require(third.cumulative)
        #expect(all[.put] == 1 && all[.hit] == 1 && all[.miss] == 1)
        #expect(all[.bytesWritten] == 5 && all[.bytesRead] == 5)
        #expect(third.counters[.put] == 0)
    }

    @Test func `concurrent threads lose no count`() throws {
        let store = fixture.store
        let other = other
        onThreads(20) { index in
            for _ in 0..<2_000 { (index % 2 == 0 ? store : other).counters.add(.memoryHit) }
        }
        #expect(store.counters[.memoryHit] == 20_000)
        #expect(store.cumulative?[.memoryHit] == 40_000)
    }

    @Test func `a reset clears the cumulative counts, and each store's own counts stay`() throws {
        try fixture.put("value", "key")
        let generation = try #require(fixture.store.generation(of: Digest(ofKey: "key")))
        _ = other.control.resetCounters(now: .now)
        #expect(fixture.store.cumulative?[.put] == 0)
        #expect(fixture.store.counters[.put] == 1)
        #expect(fixture.store.isCurrent(generation) == true)
        #expect(fixture.store.control.usage?.entries == 1)
    }

    @Test func `a sweep counts itself and what it removes by reason`() throws {
        try fixture.put("one", "a", expires: .now + .milliseconds(1))
        try fixture.put("two", "b")
        #expect(try other.remove(Digest(ofKey: "b")))
        try fixture.sweep(now: .now + .seconds(10)) { $0.isDryRun = true }
        #expect(fixture.store.cumulative?[.sweep] == 0 && fixture.store.cumulative?[.sweptExpired] == 0)
        try fixture.sweep(now: .now + .seconds(10))
        let all = try #require(other.cumulative)
        #expect(all[.sweep] == 1 && all[.sweptExpired] == 1 && all[.sweptOrphan] == 1)
        #expect(all[.removal] == 1)
        for reason in RemovalReason.allCases where reason != .expired && reason != .orphan {
            #expect(all[StoreCounters.Event(reason)] == 0)
        }
    }

    // MARK: Usage

    @Test(arguments: RecordForm.both)
    func `the usage follows puts, replacements, removals and sweeps`(form: RecordForm) throws {
        let fixture = try StoreFixture(form)
        let block = fixture.store.directory.fileSystem.blockSize
        try fixture.put("one", "a")
        try fixture.put("one", "b")
        try fixture.put("two", "b")
        let entryBytes = form == .attribute ? 0 : block
        #expect(
            fixture.store.control.usage
                == StoreUsage(bytes: 2 * block + 2 * entryBytes, entries: 2, isCounted: true)
        )
        #expect(try fixture.store.remove(Digest(ofKey: "a")))
        #expect(fixture.store.control.usage?.entries == 1)
        let report = try fixture.sweep()
        let left = report.entries.bytes + report.objects.bytes
        #expect(fixture.store.control.usage == StoreUsage(bytes: left, entries: 1, isCounted: true))
        #expect(fixture.objects.count == 1)
    }

    @Test func `a sweep corrects the usage and reports the drift`() throws {
        try fixture.put("one", "a")
        try fixture.put("two", "b")
        let known = try #require(try fixture.sweep().drift)
        #expect(known.count == 0)
        let usage = try #require(fixture.store.control.usage)
        other.control.addUsage(bytes: 1 << 20, entries: 5)
        #expect(try fixture.sweep { $0.isDryRun = true }.drift == nil)
        let drift = try #require(try fixture.sweep().drift)
        #expect(drift.count == 5 && drift.bytes == 1 << 20)
        #expect(fixture.store.control.usage == usage)
    }

    @Test func `a sweep corrects a usage that was overwritten with garbage`() throws {
        try fixture.put("one", "a")
        try fixture.sweep()
        let usage = try #require(fixture.store.control.usage)
        for garbage in [UInt64(Int64.max), UInt64(bitPattern: .min), .max, 1] {
            let words = try #require(fixture.store.control.writableWords)
            words.store(garbage, at: .usedBytes)
            words.store(garbage, at: .usedEntries)
            try fixture.sweep()
            #expect(fixture.store.control.usage == usage)
        }
    }

    @Test func `a sweep counts the usage from zero after the file is recreated`() throws {
        try fixture.put("one", "a")
        try fixture.sweep()
        let usage = try #require(fixture.store.control.usage)
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        fixture.store.renewControl()
        #expect(fixture.store.control.usage == StoreUsage(bytes: 0, entries: 0, isCounted: false))
        let drift = try #require(try fixture.sweep().drift)
        #expect(drift.count == -1)
        #expect(fixture.store.control.usage == usage)
    }
}
