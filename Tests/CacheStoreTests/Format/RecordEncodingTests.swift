// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct RecordEncodingTests {
    let entry = Digest(ofKey: "user:00000001/th")
    let content = Content(of: Array("value".utf8).span)
    let created = Timestamp(nanoseconds: 1_790_000_000_123_000_000)

    private func fullRecord() -> Record {
        var record = Record(content: content, created: created)
        record.expires = created + .seconds(3600)
        record.idleLifetime = .milliseconds(1500)
        record.staleFor = .seconds(3600)
        record.cost = .milliseconds(200)
        record.key = "user:00000001/th"
        record.details.entityTag = "\"abc\""
        record.details.lastModified = "Sat, 21 Nov 2026 00:00:00 GMT"
        record.details.contentType = "image/webp"
        record.details.tags = ["a", "", "ü"]
        record.details.metadata = ["k": "v", "": "empty", "empty": ""]
        return record
    }

    private func roundTrip(_ record: Record) -> Record? {
        Record(decoding: record.encoded(for: entry), for: entry)
    }

    @Test func `a record with all fields round-trips, its cost to 7 per cent`() throws {
        let record = fullRecord()
        let cost = try #require(record.cost)
        #expect(abs(cost / .milliseconds(200) - 1) < 0.07)
        #expect(roundTrip(record) == record)
    }

    @Test func `a version round-trips, and takes four bytes in a record of its time`() throws {
        var generator = SeededGenerator(seed: 30)
        var record = fullRecord()
        let length = record.encoded(for: entry).count
        record.version = ChangeVersion(at: created + .microseconds(999), machine: 4095)
        #expect(record.encoded(for: entry).count == length + 4)
        for _ in 0..<2000 {
            let number = UInt64.random(in: 0...UInt64.max, using: &generator)
            record.version = ChangeVersion(rawValue: number >> UInt64.random(in: 0..<64, using: &generator))
            #expect(roundTrip(record) == record)
        }
        var plain = Record(content: content, created: created)
        plain.version = .none
        #expect(roundTrip(plain)?.storedVersion == ChangeVersion.none)
        #expect(Record(content: content, created: created).version.moment == created)
    }

    @Test func `a setter rounds a field to the value that is read back`() {
        var generator = SeededGenerator(seed: 19)
        for _ in 0..<2000 {
            func span() -> Duration {
                .nanoseconds(Int64.random(in: -3_000_000..<90_000_000_000, using: &generator))
            }
            var record = Record(content: content, created: created + span())
            if Bool.random(using: &generator) { record.expires = created + span() }
            if record.expires != nil, Bool.random(using: &generator) { record.idleLifetime = span() }
            if Bool.random(using: &generator) { record.staleFor = span() }
            if Bool.random(using: &generator) { record.cost = span() }
            #expect(roundTrip(record) == record)
        }
        var first = Record(content: content, created: .distantPast)
        #expect(roundTrip(first) == first)
        first.expires = .distantFuture
        first.staleFor = .seconds(Int64.max)
        #expect(roundTrip(first) == first)
    }

    @Test func `the stale period of a value that never expires is kept in an optional item`()
        throws
    {
        var record = Record(content: content, created: created)
        record.staleFor = .milliseconds(90_500)
        let bytes = record.encoded(for: entry)
        // Version 1 without the item: flags "details", a length of 5, kind 6, a length of 3, and the span.
        #expect(bytes[1] == 0x20 && bytes.suffix(6) == [5, 6, 3, 0x89, 0x86, 0x0b])
        #expect(Record(decoding: bytes, for: entry) == record)
        #expect(Record(decoding: bytes, for: entry)?.hasDetails == false)
        record.details.tags = ["t"]
        #expect(roundTrip(record) == record)
    }

    @Test func `each field alone round-trips`() {
        let plain = Record(content: content, created: created)
        #expect(roundTrip(plain) == plain)
        var record = plain
        record.expires = created + .seconds(86_400)
        #expect(roundTrip(record) == record)
        record.idleLifetime = .seconds(86_400)
        #expect(roundTrip(record) == record)
        record = plain
        record.key = ""
        #expect(roundTrip(record) == record)
        record.details.tags = ["only"]
        #expect(roundTrip(record) == record)
    }

    @Test func `a key of any length round-trips, with and without details`() {
        var record = Record(content: content, created: created)
        record.expires = created + .seconds(60)
        for length in 0...Record.longestKey {
            record.key = String(repeating: "k", count: length)
            #expect(roundTrip(record) == record, "\(length) bytes")
        }
        record.details.contentType = "image/webp"
        for length in [0, 1, 100, 300, Record.longestKey] {
            record.key = String(repeating: "k", count: length)
            #expect(roundTrip(record) == record, "\(length) bytes and details")
        }
    }

    @Test func `a record with a 16-byte key, a week's lifetime and a cost fits ext4's inode`() {
        var record = Record(
            content: Content(digest: content.digest, length: (256 << 20) - 1, checksum: .max),
            created: created
        )
        record.key = "user:00000001/th"
        record.expires = created + .seconds(7 * 86_400)
        record.idleLifetime = .seconds(7 * 86_400)
        record.cost = .seconds(3)
        #expect(record.encoded(for: entry).count <= 68)
    }

    @Test func `times are kept to the millisecond and never rounded up`() throws {
        var record = Record(content: content, created: Timestamp(nanoseconds: 1_790_000_000_123_999_999))
        record.expires = Timestamp(nanoseconds: 1_790_000_001_123_999_998)
        let read = try #require(roundTrip(record))
        #expect(read.created == Timestamp(nanoseconds: 1_790_000_000_123_000_000))
        #expect(read.expires == Timestamp(nanoseconds: 1_790_000_001_123_000_000))
    }

    @Test func `an expiration before the creation is kept as a past one`() throws {
        var record = Record(content: content, created: created)
        record.expires = created - .seconds(10)
        let read = try #require(roundTrip(record))
        #expect(read.freshness(at: created, accessed: created) == .expired)
    }

    @Test func `a time out of range saturates`() throws {
        var record = Record(content: content, created: created)
        record.expires = .distantFuture
        let read = try #require(roundTrip(record))
        let expires = try #require(read.expires)
        #expect(expires > created + .seconds(200 * 365 * 86_400))
    }

    @Test func `with another key or any bit flipped a record is rejected or has other content`() {
        let bytes = fullRecord().encoded(for: entry)
        #expect(Record(decoding: bytes, for: Digest(ofKey: "other"))?.content != content)
        for bit in 0..<bytes.count * 8 {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << (bit % 8)
            #expect(Record(decoding: damaged, for: entry)?.content != content, "bit \(bit)")
        }
    }

    @Test func `every prefix of a record is decoded without a trap and has other content`() {
        let bytes = fullRecord().encoded(for: entry)
        for count in 0..<bytes.count {
            #expect(Record(decoding: Array(bytes.prefix(count)), for: entry)?.content != content)
        }
    }

    @Test(arguments: [0, UInt64.random(in: 1...UInt64.max)])
    func `arbitrary bytes never trap`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let bytes = fullRecord().encoded(for: entry)
        for _ in 0..<20_000 {
            var candidate =
                Bool.random(using: &generator)
                ? bytes
                : (0..<Int.random(in: 0...200, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
            for _ in 0..<Int.random(in: 0...6, using: &generator) where !candidate.isEmpty {
                candidate[Int.random(in: 0..<candidate.count, using: &generator)] =
                    UInt8.random(in: 0...255, using: &generator)
            }
            // A version and flags that reach further into the decoder than random ones.
            if candidate.count > 1 { candidate[0] = 1 }
            if candidate.count > 1, Bool.random(using: &generator) { candidate[1] &= 0x7f }
            if let record = Record(decoding: candidate, for: entry) {
                _ = record.freshness(at: created, accessed: created)
                _ = record.encoded(for: entry)
            }
        }
    }

    @Test func `a record of a later version or with missing fields is rejected`() {
        var bytes = Record(content: content, created: created).encoded(for: entry)
        bytes[1] = 0x80
        #expect(Record(decoding: bytes, for: entry) == nil)
        bytes[1] = 0
        bytes[0] = 2
        #expect(Record(decoding: bytes, for: entry) == nil)
    }

    @Test(arguments: [0, 1, 7, 8, 9, 100, 5000, 123_456, 10_000_000])
    func `a cost round-trips to 7 per cent`(milliseconds: Int) {
        let cost = Duration.milliseconds(milliseconds)
        let read = CostCode.decode(CostCode.encode(cost))
        #expect(abs((read - cost) / .milliseconds(1)) <= max(0.065, 0.07 * Double(milliseconds)))
    }

    @Test func `costs out of range are clamped`() {
        #expect(CostCode.decode(CostCode.encode(.seconds(-1))) == .zero)
        #expect(CostCode.encode(.seconds(Int64.max)) == 255)
    }
}
