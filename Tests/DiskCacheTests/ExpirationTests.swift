// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct ExpirationTests {
    @Test(arguments: [
        (Expiration.seconds(60), 60.0), (.seconds(0.5), 0.5), (.days(2), 172_800),
        (.after(.milliseconds(250)), 0.25),
    ])
    func `a value expires exactly at the end of its lifetime`(
        expiration: Expiration,
        life: Double
    ) throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("value", forKey: "key", options: PutOptions(expires: expiration))
        fixture.clock.advance(by: life - 0.002)
        #expect(try fixture.text("key") == "value")
        fixture.clock.advance(by: 0.002)
        #expect(try fixture.text("key") == nil)
    }

    @Test func `a value can expire at a given time, at once, or never`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("a", forKey: "at", options: PutOptions(expires: .at(fixture.clock.now + 10)))
        try fixture.cache.put("b", forKey: "past", options: PutOptions(expires: .at(fixture.clock.now - 10)))
        try fixture.cache.put("c", forKey: "expired", options: PutOptions(expires: .expired))
        try fixture.cache.put("d", forKey: "zero", options: PutOptions(expires: .seconds(0)))
        try fixture.cache.put("e", forKey: "never", options: PutOptions(expires: .never))
        for key in ["past", "expired", "zero"] { #expect(try fixture.text(key) == nil, "\(key)") }
        #expect(try fixture.text("at") == "a")
        fixture.clock.advance(by: 10)
        #expect(try fixture.text("at") == nil)
        fixture.clock.advance(by: 1e9)
        #expect(try fixture.text("never") == "e")
    }

    @Test(arguments: [
        Expiration.seconds(-1), .days(-1), .after(.seconds(-1)), .seconds(-.infinity), .seconds(.nan),
    ])
    func `a negative lifetime is refused`(expiration: Expiration) throws {
        let fixture = try CacheFixture()
        #expect(
            code { try fixture.cache.put("x", forKey: "key", options: PutOptions(expires: expiration)) }
                == .invalidArgument
        )
        #expect(try fixture.text("key") == nil)
    }

    @Test(arguments: [
        Expiration.seconds(1e300), .seconds(.infinity), .days(.max), .after(.seconds(Int64.max)),
        .at(.distantFuture),
    ])
    func `a lifetime beyond the representable range means never`(expiration: Expiration) throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("x", forKey: "key", options: PutOptions(expires: expiration))
        #expect(try fixture.cache.entry(forKey: "key")?.expires == nil)
        fixture.clock.advance(by: 3e9)
        #expect(try fixture.text("key") == "x")
        #expect(try fixture.cache.setExpiration(expiration, onAccess: .renew, forKey: "key"))
        let entry = try #require(try fixture.cache.entry(forKey: "key"))
        #expect(entry.expires == nil && entry.extendsOnAccess == nil)
    }

    @Test func `the default expiration applies if a put gives none`() throws {
        let fixture = try CacheFixture { $0.defaultExpiration = .seconds(5) }
        try fixture.cache.put("x", forKey: "default")
        try fixture.cache.put("y", forKey: "own", options: PutOptions(expires: .seconds(50)))
        fixture.clock.advance(by: 6)
        #expect(try fixture.text("default") == nil)
        #expect(try fixture.text("own") == "y")
    }

    @Test func `a stale value is returned on request, marked as stale, within its window`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put(
            "x",
            forKey: "key",
            options: PutOptions(expires: .seconds(10), staleFor: .seconds(5))
        )
        fixture.clock.advance(by: 12)
        #expect(try fixture.text("key") == nil)
        let stale = try fixture.cache.get(forKey: "key", reading: ReadOptions(acceptsStale: true))
        #expect(stale?.isStale == true)
        try fixture.cache.directory.collect()
        #expect(try fixture.text("key", allowingStale: true) == "x")
        fixture.clock.advance(by: 3)
        #expect(try fixture.text("key", allowingStale: true) == nil)
    }

    @Test func `the stale window is kept while a value never expires`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("x", forKey: "key", options: PutOptions(expires: .never, staleFor: .seconds(5)))
        #expect(try fixture.cache.entry(forKey: "key")?.staleFor == .seconds(5))
        #expect(try fixture.cache.setExpiration(.seconds(10), forKey: "key"))
        fixture.clock.advance(by: 12)
        #expect(try fixture.text("key") == nil)
        #expect(try fixture.text("key", allowingStale: true) == "x")
        try fixture.cache.put(
            "x",
            forKey: "key",
            options: PutOptions(expires: .seconds(10), staleFor: .seconds(5))
        )
        #expect(try fixture.cache.setExpiration(.never, forKey: "key"))
        #expect(try fixture.cache.setExpiration(.seconds(10), forKey: "key"))
        fixture.clock.advance(by: 12)
        #expect(try fixture.text("key", allowingStale: true) == "x")
    }

    @Test func `a value expires at the same moment in all processes`() throws {
        let fixture = try CacheFixture { $0.memory = CacheConfiguration.Memory() }
        let other = try SharedCache(at: fixture.cache.path, configuration: fixture.cache.configuration)
        fixture.clock.advance(by: 0.000_7)
        try fixture.cache.put("x", forKey: "key", options: PutOptions(expires: .after(.microseconds(2500))))
        let entry = try #require(try fixture.cache.get(forKey: "key")).entry
        #expect(try #require(try other.get(forKey: "key")).entry == entry)
        for _ in 0..<20 {
            fixture.clock.advance(by: 0.000_2)
            let isHere = try fixture.cache.get(forKey: "key") != nil
            #expect(try (other.get(forKey: "key") != nil) == isHere)
        }
    }

    @Test func `renew starts the lifetime again with each access`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put(
            "x",
            forKey: "key",
            options: PutOptions(expires: .seconds(10), onAccess: .renew)
        )
        try fixture.cache.put(
            "y",
            forKey: "kept",
            options: PutOptions(expires: .seconds(10), onAccess: .keep)
        )
        for _ in 0..<5 {
            fixture.clock.advance(by: 8)
            #expect(try fixture.text("key") == "x")
        }
        #expect(try fixture.text("kept") == nil)
        fixture.clock.advance(by: 10)
        #expect(try fixture.text("key") == nil)
    }

    @Test func `set gives a separate lifetime after an access and refuses zero`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put(
            "x",
            forKey: "key",
            options: PutOptions(expires: .seconds(10), onAccess: .set(.seconds(100)))
        )
        fixture.clock.advance(by: 9)
        #expect(try fixture.text("key") == "x")
        fixture.clock.advance(by: 99)
        #expect(try fixture.text("key") == "x")
        #expect(
            code {
                try fixture.cache.put(
                    "x",
                    forKey: "key",
                    options: PutOptions(expires: .days(1), onAccess: .set(.zero))
                )
            }
                == .invalidArgument
        )
    }

    @Test func `setExpiration changes an existing entry and returns false for an absent one`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put(
            "x",
            forKey: "key",
            options: PutOptions(expires: .seconds(10), onAccess: .renew, tags: ["t"], metadata: ["m": "n"])
        )
        let created = fixture.clock.now
        fixture.clock.advance(by: 5)
        #expect(try fixture.cache.setExpiration(.seconds(100), forKey: "key"))
        fixture.clock.advance(by: 99)
        let entry = try #require(try fixture.cache.entry(forKey: "key"))
        #expect(entry.created == created)
        #expect(entry.tags == ["t"] && entry.metadata == ["m": "n"])
        #expect(entry.extendsOnAccess == nil)
        fixture.clock.advance(by: 1)
        #expect(try fixture.text("key") == nil)
        #expect(try !fixture.cache.setExpiration(.never, forKey: "key"))
        #expect(try !fixture.cache.setExpiration(.never, forKey: "absent"))
    }

    @Test func `a shortened expiration takes effect at once`() throws {
        let fixture = try CacheFixture()
        try fixture.cache.put("x", forKey: "key", options: PutOptions(expires: .days(1), onAccess: .renew))
        fixture.clock.advance(by: 1)
        _ = try fixture.cache.get(forKey: "key")
        #expect(try fixture.cache.setExpiration(.seconds(1), forKey: "key"))
        #expect(try fixture.text("key") == "x")
        fixture.clock.advance(by: 1)
        #expect(try fixture.text("key") == nil)
    }

    @Test func `byte counts saturate and are never negative`() {
        #expect(ByteCount.gibibytes(2).bytes == 2 << 30)
        #expect(ByteCount.gibibytes(.max).bytes == .max)
        #expect(ByteCount.kibibytes(-1).bytes == 0)
        #expect(ByteCount.gibibytes(-(1 << 33) - 1).bytes == 0)
        #expect(ByteCount.mebibytes(1) > .kibibytes(1023))
    }

    @Test func `a lifetime of any length does not trap`() async {
        await #expect(processExitsWith: .success) {
            let fixture = try CacheFixture()
            try fixture.cache.put("v", forKey: "k", options: PutOptions(expires: .after(.seconds(1e19))))
        }
    }

    @Test func `a patience of any length does not trap`() async {
        await #expect(processExitsWith: .success) {
            let fixture = try CacheFixture()
            var options = CollectionOptions()
            options.patience = Duration(attoseconds: .max)
            let patient = options
            _ = try await fixture.cache.blocking { try $0.directory.collect(patient) }
        }
    }
}
