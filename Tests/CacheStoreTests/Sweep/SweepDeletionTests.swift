// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Deletions by one thread of a sweep, of files that may have changed since the scan.
@Suite(.takesTurns) struct SweepDeletionTests {
    private let fixture: StoreFixture

    init() throws {
        fixture = try StoreFixture()
    }

    private struct NoShard: Error {}

    private func shard(_ tree: Tree, of digest: Digest, _ store: Store) throws -> Directory {
        guard let shard = try store.open(tree, shard: Int(digest.bytes[0])) else { throw NoShard() }
        return shard
    }

    private func seen(_ keys: [String], by sweep: Sweep) throws -> [Removal] {
        try keys.map { key in
            let digest = Digest(ofKey: key)
            let shard = try shard(.entries, of: digest, sweep.store)
            let found = try sweep.store.entry(digest, in: shard)
            let (bytes, status) = try #require(found)
            let record = try #require(Record(decoding: bytes, for: digest))
            let entry = SeenEntry(digest, record, bytes, status, limits: CacheLimits(), now: .now)
            return Removal(entry, .size)
        }
    }

    private func delete(_ removals: [Removal], by sweep: Sweep) throws {
        var sweep = sweep
        _ = sweep.state.value.withLock { state in
            state.note(removals.compactMap { removal in removal.entry.map { ($0, 0) } })
        }
        let first = try #require(removals.first)
        let shard = try shard(.entries, of: first.digest, sweep.store)
        let isDone = try sweep.delete(removals, in: shard)
        #expect(isDone)
    }

    @Test func `an overwritten entry is spared although the clock was set back`() throws {
        try fixture.put("old", "key")
        let later = Timestamp.now + .seconds(3600)
        var sweep = Sweep(
            SweepRequest(),
            on: fixture.store,
            now: .now,
            clock: ClockCheck(time: later, instant: .now)
        )
        sweep.stamp.time = later
        let removals = try seen(["key"], by: sweep)
        try fixture.put("new", "key")
        try delete(removals, by: sweep)
        #expect(try fixture.get("key") == "new")
        #expect(sweep.state.value.withLock { $0.report.spared } == 1)
    }

    @Test func `no object is deleted if the clock was set back`() throws {
        try fixture.put("value", "key")
        let later = Timestamp.now + .seconds(3600)
        let digest = Digest(of: Array("value".utf8).span)
        for (time, count) in [(later, 1), (Timestamp.now, 0)] {
            var sweep = Sweep(
                SweepRequest(),
                on: fixture.store,
                now: .now,
                clock: ClockCheck(time: time, instant: .now)
            )
            sweep.stamp.time = later
            let object = Removal(object: digest, AllocatedSize(bytes: 0), freed: nil)
            let shard = try shard(.objects, of: digest, sweep.store)
            let isDone = try sweep.delete([object], in: shard)
            #expect(isDone)
            #expect(fixture.objects.count == count)
        }
    }

    @Test func `an entry overwritten since the stamp is read again and stays`() throws {
        try fixture.put("old", "key")
        var sweep = Sweep(SweepRequest(), on: fixture.store, now: .now)
        sweep.stamp.time = try FileStatus.of(fixture.entryPath("key")).changed + .nanoseconds(1)
        let untouched = try seen(["key"], by: sweep)
        let stamp = sweep.stamp.time
        // Until the kernel's clock has advanced.
        repeat {
            try fixture.put("new", "key")
        } while try FileStatus.of(fixture.entryPath("key")).changed < stamp
        try delete(untouched, by: sweep)
        #expect(try fixture.get("key") == "new")
    }

    @Test func `a stripe lock is released after at most a millisecond of deletions`() throws {
        // All in one shard, which belongs to one stripe.
        let keys = (0...).lazy.map { "key \($0)" }.filter { Digest(ofKey: $0).bytes[0] == 0 }.prefix(40)
        for key in keys { try fixture.put(key, key) }
        let reading = Locked<(count: Int, now: ContinuousClock.Instant)>.Box((0, .now))
        var sweep = Sweep(SweepRequest(), on: fixture.store, now: .now)
        sweep.deletions.instant = {
            reading.value.withLock { reading in
                reading.count += 1
                reading.now += .microseconds(300)
                return reading.now
            }
        }
        try delete(try seen(Array(keys), by: sweep), by: sweep)
        #expect(fixture.entries.isEmpty)
        // Read at the start of each hold and after each deletion except the last; each fourth deletion ends a hold.
        #expect(reading.value.withLock { $0.count } == 10 + 39)
    }
}
