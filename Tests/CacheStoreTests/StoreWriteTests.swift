// SPDX-License-Identifier: Apache-2.0

import Platform
import Testing

@testable import CacheStore

/// What a put leaves on disk, and how it gets on beside others.
struct StoreWriteTests {
    @Test(arguments: RecordForm.both)
    func `a new entry has the file system's time, unless that would count as an access`(
        form: RecordForm
    ) throws {
        let fixture = try StoreFixture(form)
        func accessed(_ name: String, _ record: Record) throws -> Timestamp? {
            let key = Digest(ofKey: name)
            try fixture.store.put(Array("v".utf8).span, for: key, record)
            return try fixture.store.entries.status(of: key)?.accessed
        }
        let now = Timestamp.now
        var record = fixture.record("v", created: now)
        let plain = try #require(try accessed("plain", record))
        #expect(plain > now - .seconds(1) && plain < now + .seconds(60))
        let early = fixture.record("v", created: now - .seconds(100))
        #expect(try accessed("early", early) == early.created)
        let late = fixture.record("v", created: now + .seconds(100))
        #expect(try accessed("late", late) == late.created)
        record.expires = record.created + .seconds(5)
        record.idleLifetime = .seconds(5)
        #expect(try accessed("sliding", record) == record.created)
    }
}
