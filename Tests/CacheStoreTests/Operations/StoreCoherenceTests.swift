// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import CacheStore

/// Reads during the replacement of a record, and writes over damage.
@Suite(.takesTurns) struct StoreCoherenceTests {
    /// No access is recorded here, so no record lives beyond its first expiration.

    @Test(arguments: RecordForm.both)
    func `the file time of a replacement does not extend an expired sliding record`(
        form: RecordForm
    ) throws {
        final class State: Sendable { let stop = Atomic<Bool>(false) }
        let fixture = try StoreFixture(form)
        let state = State()
        let key = Digest(ofKey: "key")
        let store = fixture.store
        let writer = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            while !state.stop.load(ordering: .relaxed) {
                var record = Record(content: Content(of: [1].span), created: .now)
                record.expires = record.created + .milliseconds(1)
                record.idleLifetime = .milliseconds(50)
                if form == .attribute { _ = try? store.remove(key) }
                _ = try? store.put([1].span, for: key, record)
                usleep(1500)
            }
            writer.signal()
        }
        var late = 0
        var reads = 0
        let end = ContinuousClock.now + .seconds(1)
        while ContinuousClock.now < end {
            let now = Timestamp.now
            reads += 1
            if let live = try store.liveEntry(key, now: now, allowingStale: false),
                let expires = live.record.expires, expires <= now
            {
                late += 1
            }
        }
        state.stop.store(true, ordering: .relaxed)
        writer.wait()
        #expect(late == 0, "\(late) of \(reads)")
    }

    @Test func `putIfAbsent does not reuse a damaged object`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.damage(fixture.objectPath("value"), Array("xalue".utf8))
        let key = Digest(ofKey: "key")
        let observed = try fixture.store.observe(key, now: .now)
        #expect(observed.value == nil)
        #expect(
            try fixture.store.put(
                Array("value".utf8).span,
                for: key,
                fixture.record("value"),
                ifStill: observed.stored
            ).isWritten
        )
        #expect(try fixture.get("key") == "value")
    }

    @Test func `damaged content that is read by its digest is removed`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.damage(fixture.objectPath("value"), Array("xalue".utf8))
        #expect(try fixture.store.data(for: Digest(of: Array("value".utf8).span)) == nil)
        #expect(fixture.objects.isEmpty)
    }
}
