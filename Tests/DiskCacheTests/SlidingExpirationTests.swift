// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

/// Sliding expirations and the access times that they depend on, with several readers, writers and collections of one
/// value.
@Suite(.takesTurns) struct SlidingExpirationTests {
    @Test func `a stale hit does not revive an expired sliding value`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put(
            "v",
            forKey: "k",
            options: PutOptions(expires: .seconds(10), onAccess: .renew, staleFor: .seconds(100))
        )
        fixture.clock.advance(by: 20)
        #expect(try fixture.text("k") == nil)
        #expect(try fixture.text("k", allowingStale: true) == "v")
        #expect(try fixture.text("k") == nil)
    }

    @Test func `a stale hit does not revive a sliding value that a rule has expired`() throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        try cache.put("v", forKey: "k", options: PutOptions(expires: .seconds(600), onAccess: .renew))
        for _ in 0..<3 {
            fixture.clock.advance(by: 480)
            #expect(try fixture.text("k") == "v")
        }
        fixture.clock.advance(by: 360)
        try cache.expireAll(.prefix("k"), staleFor: .seconds(3600))
        fixture.clock.advance(by: 120)
        #expect(try fixture.text("k", allowingStale: true) == "v")
        fixture.clock.advance(by: 60)
        #expect(try fixture.text("k") == nil)
        #expect(try !cache.contains(forKey: "k"))
    }

    @Test func `a put does not count as an access of its value`() throws {
        let fixture = try CacheFixture()
        fixture.clock.advance(by: 0.0004567)
        try fixture.cache.put(
            "v",
            forKey: "k",
            options: PutOptions(expires: .seconds(1), onAccess: .set(.seconds(100)))
        )
        fixture.clock.advance(by: 2)
        #expect(try fixture.text("k") == nil)
    }

    @Test(arguments: [CacheConfiguration.MetadataForm.automatic, .sidecar])
    func `a value set to expire at once expires despite its sliding expiration`(
        form: CacheConfiguration.MetadataForm
    ) throws {
        let fixture = try CacheFixture { $0.metadataForm = form }
        let cache = fixture.cache
        try cache.put("v", forKey: "k", options: PutOptions(expires: .seconds(60), onAccess: .renew))
        fixture.clock.advance(by: 30)
        #expect(try fixture.text("k") == "v")
        let isSet = try cache.setExpiration(
            .expired,
            onAccess: .set(.seconds(100)),
            staleFor: .seconds(1000),
            forKey: "k"
        )
        #expect(isSet)
        #expect(try fixture.text("k") == nil && fixture.text("k", allowingStale: true) == "v")
    }

    @Test func `an access of the previous value prolongs nothing, even in the overwrite's millisecond`()
        throws
    {
        let fixture = try CacheFixture()
        fixture.clock.advance(by: 0.0002)
        try fixture.cache.put("old", forKey: "k")
        fixture.clock.advance(by: 0.0002)
        #expect(try fixture.text("k") == "old")
        fixture.clock.advance(by: 0.0002)
        try fixture.cache.put(
            "v",
            forKey: "k",
            options: PutOptions(expires: .seconds(1), onAccess: .set(.seconds(100)))
        )
        fixture.clock.advance(by: 2)
        #expect(try fixture.text("k") == nil)
    }

    @Test func `an access in the put's millisecond is made up for by the next one`() throws {
        let fixture = try CacheFixture { $0.accessGranularity = .seconds(225) }
        try fixture.cache.put(
            "v",
            forKey: "k",
            options: PutOptions(expires: .seconds(1), onAccess: .set(.seconds(100)))
        )
        fixture.clock.advance(by: 0.0005)
        #expect(try fixture.text("k") == "v")
        fixture.clock.advance(by: 0.5)
        #expect(try fixture.text("k") == "v")
        fixture.clock.advance(by: 50)
        #expect(try fixture.text("k") == "v")
    }

    @Test func `a sliding value put as expired is expired at once`() throws {
        let fixture = try CacheFixture()
        fixture.clock.advance(by: 0.0004567)
        try fixture.cache.put("v", forKey: "k", options: PutOptions(expires: .expired, onAccess: .renew))
        #expect(try fixture.text("k") == nil)
    }

    @Test(arguments: [CacheConfiguration.MetadataForm.automatic, .sidecar])
    func `setExpiration counts as an access`(form: CacheConfiguration.MetadataForm) throws {
        let fixture = try CacheFixture { $0.metadataForm = form }
        try fixture.cache.put("v", forKey: "k")
        fixture.clock.advance(by: 5)
        #expect(try fixture.text("k") == "v")
        fixture.clock.advance(by: 45)
        try fixture.cache.setExpiration(.seconds(10), onAccess: .set(.seconds(100)), forKey: "k")
        // With the old access at 5 s the value would end at 105 s.
        fixture.clock.advance(by: 90)
        #expect(try fixture.text("k") == "v")
    }

    @Test func `an access after an overwrite counts even soon after the previous access`() throws {
        let fixture = try CacheFixture { $0.accessGranularity = .seconds(225) }
        func put() throws {
            try fixture.cache.put(
                "v",
                forKey: "k",
                options: PutOptions(expires: .seconds(10), onAccess: .set(.seconds(100)))
            )
        }
        try put()
        fixture.clock.advance(by: 1)
        #expect(try fixture.text("k") == "v")
        fixture.clock.advance(by: 1)
        try put()
        fixture.clock.advance(by: 1)
        #expect(try fixture.text("k") == "v")
        fixture.clock.advance(by: 20)
        #expect(try fixture.text("k") == "v")
    }

    @Test func `an access recorded slightly in a reader's future does not make it miss`() throws {
        let fixture = try CacheFixture()
        var configuration = CacheConfiguration()
        configuration.accessGranularity = .zero
        configuration.now = { fixture.clock.now + 0.001 }
        let other = try SharedCache(at: fixture.cache.path, configuration: configuration)
        try fixture.cache.put("v", forKey: "k", options: PutOptions(expires: .seconds(10), onAccess: .renew))
        fixture.clock.advance(by: 9)
        #expect(try fixture.text("k") == "v")
        fixture.clock.advance(by: 5)
        #expect(try other.get(forKey: "k") != nil)
        #expect(try fixture.text("k") == "v")
    }

    @Test func `a collection does not delete a value that was accessed after its start time`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("v", forKey: "k", options: PutOptions(expires: .seconds(10), onAccess: .renew))
        fixture.clock.advance(by: 9)
        #expect(try fixture.text("k") == "v")
        fixture.clock.advance(by: 5)
        // The collector reads the clock and waits for another collector; meanwhile the value is used.
        let begin = Timestamp(fixture.clock.now)
        fixture.clock.advance(by: 1)
        #expect(try fixture.text("k") == "v")
        let store = try Store(at: fixture.cache.path)
        let report = try Sweep.run(SweepRequest(), on: store, now: begin)
        #expect(report.removed.isEmpty)
        #expect(try fixture.text("k") == "v")
    }

    @Test func `a value accessed during a collection is not the least recently used`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("hot", forKey: "hot")
        fixture.clock.advance(by: 1)
        try fixture.cache.put("cold", forKey: "cold")
        fixture.clock.advance(by: 10)
        let begin = Timestamp(fixture.clock.now)
        fixture.clock.advance(by: 1)
        #expect(try fixture.text("hot") == "hot")
        var request = SweepRequest()
        request.limits.maximumEntries = 1
        _ = try Sweep.run(request, on: try Store(at: fixture.cache.path), now: begin)
        #expect(try fixture.text("hot") == "hot")
    }
}
