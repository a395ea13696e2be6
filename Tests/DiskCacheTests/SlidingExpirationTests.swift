// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

/// Sliding expirations and the access times that they hang on, where several readers, writers and
/// collections work on one value.
@Suite(.takesTurns) struct SlidingExpirationTests {
    @Test func `a stale hit does not bring an expired sliding value back to life`() throws {
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

    @Test func `a put is no access of its own value`() throws {
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
    func `a value that is set to expire at once does, whatever accesses would do to it`(
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

    @Test func `an access of the value before prolongs nothing, also in the millisecond of the overwrite`()
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

    @Test func `an access in the millisecond of the put is made up for by the next`() throws {
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

    @Test func `expired is expired at once, sliding or not`() throws {
        let fixture = try CacheFixture()
        fixture.clock.advance(by: 0.0004567)
        try fixture.cache.put("v", forKey: "k", options: PutOptions(expires: .expired, onAccess: .renew))
        #expect(try fixture.text("k") == nil)
    }

    @Test(arguments: [CacheConfiguration.MetadataForm.automatic, .sidecar])
    func `a new expiration is an access, in either form`(form: CacheConfiguration.MetadataForm) throws {
        let fixture = try CacheFixture { $0.metadataForm = form }
        try fixture.cache.put("v", forKey: "k")
        fixture.clock.advance(by: 5)
        #expect(try fixture.text("k") == "v")
        fixture.clock.advance(by: 45)
        try fixture.cache.setExpiration(.seconds(10), onAccess: .set(.seconds(100)), forKey: "k")
        // The old access at 5 would make it 105.
        fixture.clock.advance(by: 90)
        #expect(try fixture.text("k") == "v")
    }

    @Test func `an access after an overwrite counts however recent the one before it was`() throws {
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

    @Test func `an access that another reader notes a moment later does not make this one miss`() throws {
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

    @Test func `a collection does not delete what was used since it took the time`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("v", forKey: "k", options: PutOptions(expires: .seconds(10), onAccess: .renew))
        fixture.clock.advance(by: 9)
        #expect(try fixture.text("k") == "v")
        fixture.clock.advance(by: 5)
        // The collector takes the time, waits for another one, and meanwhile the value is used.
        let begin = Timestamp(fixture.clock.now)
        fixture.clock.advance(by: 1)
        #expect(try fixture.text("k") == "v")
        let store = try Store(at: fixture.cache.path)
        let report = try Sweep.run(SweepRequest(), on: store.parts, now: begin)
        #expect(report.removed.isEmpty)
        #expect(try fixture.text("k") == "v")
    }

    @Test func `what is used while a collection runs is not the least recently used`() throws {
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
        _ = try Sweep.run(request, on: try Store(at: fixture.cache.path).parts, now: begin)
        #expect(try fixture.text("hot") == "hot")
    }
}
