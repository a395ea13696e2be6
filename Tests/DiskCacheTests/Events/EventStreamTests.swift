// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct EventStreamTests {
    @Test(arguments: [true, false])
    func `streams end when the cache is closed, and later ones end at once`(
        hasJanitor: Bool
    ) async throws {
        let fixture = try CacheFixture { $0.janitor.isEnabled = hasJanitor }
        let cache = fixture.cache
        let before = cache.events
        let listening = Task {
            for await _ in before {}
            return true
        }
        await cache.close()
        #expect(await listening.value)
        for await event in cache.events { Issue.record("\(event) after the end") }
        // A second close does not change this.
        _ = await cache.close()
        for await event in cache.events { Issue.record("\(event) after the end") }
    }

    @Test func `the collection at the close of the last cache is reported as an event`() async throws {
        let fixture = try CacheFixture()
        try await fixture.cache.put("v", forKey: "k", options: PutOptions(expires: .seconds(1)))
        fixture.clock.advance(by: 2)
        let events = fixture.cache.events
        let report = await fixture.cache.close()
        var sweeps = 0
        for await event in events {
            if case .collected = event { sweeps += 1 }
        }
        #expect(sweeps == (report.collection == nil ? 0 : 1))
        #expect(report.wasLast)
    }
}
