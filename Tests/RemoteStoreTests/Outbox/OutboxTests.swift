// SPDX-License-Identifier: Apache-2.0

import CacheStore
import TestSupport
import Testing

@testable import RemoteStore

@Suite(.takesTurns) struct OutboxTests {
    private func put(_ number: Int, _ key: String? = nil, length: Int = 10) -> OutboxRecord {
        OutboxRecord(
            number: UInt64(number),
            entry: Digest(ofKey: key ?? "key \(number)"),
            work: .put(content: Digest(ofKey: "value \(number)"), length: length)
        )
    }

    private func file(_ records: [OutboxRecord]) -> [UInt8] {
        records.flatMap { $0.encoded() }
    }

    @Test("records come back as they went")
    func records() {
        let entry = Digest(ofKey: "k")
        for record in [
            put(1), OutboxRecord(number: .max, entry: entry, work: .remove),
            OutboxRecord(number: 0, entry: entry, work: .done),
        ] {
            #expect(record.encoded().count == OutboxRecord.size)
            #expect(OutboxRecord(decoding: record.encoded()) == record)
        }
    }

    @Test("a record with any bit changed is none")
    func damaged() {
        let bytes = put(1).encoded()
        for bit in 0..<bytes.count * 8 {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(OutboxRecord(decoding: changed) == nil)
        }
    }

    @Test("what a killed process has added the next one finds, in order, without what is done")
    func reading() throws {
        var outbox = Outbox()
        var bytes: [UInt8] = []
        for number in 0..<10 {
            let added = outbox.add(put(number))
            bytes += try #require(added)
        }
        for number in [3, 7] {
            let finished = outbox.finish(put(number))
            bytes += try #require(finished)
        }
        let next = Outbox(reading: bytes)
        #expect(next.pending == [0, 1, 2, 4, 5, 6, 8, 9].map { put($0) })
        #expect(next.pending == outbox.pending && next.waitingBytes == 80)
        #expect(next.fileRecords == 12 && outbox.fileRecords == 12)
    }

    @Test("later work on a key takes the place of earlier work, whose end changes nothing")
    func replacing() throws {
        var outbox = Outbox(reading: file([put(1, "a"), put(2, "b"), put(3, "a", length: 7)]))
        #expect(outbox.pending == [put(2, "b"), put(3, "a", length: 7)])
        #expect(outbox.waitingBytes == 17)
        #expect(outbox.finish(put(1, "a")) == nil)
        let removal = OutboxRecord(number: 4, entry: Digest(ofKey: "b"), work: .remove)
        #expect(outbox.add(removal) != nil)
        #expect(outbox.pending.last == removal && outbox.waitingBytes == 7)
    }

    @Test("a file cut off anywhere loses what was cut, and what comes after it is found")
    func cutOff() {
        let whole = file([put(1), put(2), put(3)])
        for length in 0...whole.count {
            let cut = Array(whole.prefix(length))
            let outbox = Outbox(reading: cut + Outbox.padding(forFileOf: length) + put(4).encoded())
            // Seven zeros at the end of each are as good when they come from the padding.
            let kept = (1...3).filter { $0 * OutboxRecord.size <= length + 7 }
            #expect(outbox.pending == (kept + [4]).map { put($0) })
        }
    }

    @Test("damage costs the records that it hits")
    func damageInside() {
        var bytes = file([put(1), put(2), put(3)])
        bytes[OutboxRecord.size + 50] ^= 1
        let outbox = Outbox(reading: bytes)
        #expect(outbox.pending == [put(1), put(3)])
        #expect(outbox.damagedRecords == 1)
    }

    @Test("what is too much is refused, and others' files can't exceed the limits either")
    func bounds() {
        var limits = Outbox.Limits()
        limits.records = 3
        limits.bytes = 25
        var outbox = Outbox(reading: [], limits)
        #expect(outbox.add(put(1)) != nil)
        #expect(outbox.add(put(2)) != nil)
        #expect(outbox.add(put(3)) == nil, "too many bytes")
        #expect(outbox.add(put(3, length: 1)) != nil)
        #expect(outbox.add(put(4, length: 0)) == nil, "too many records")
        #expect(outbox.add(put(5, "key 1", length: 12)) != nil, "takes the place of another")
        let read = Outbox(reading: file((0..<100).map { put($0, length: 5) }), limits)
        #expect(read.count == 3 && read.waitingBytes == 15)
        var long = Outbox(reading: [], limits)
        #expect(long.add(put(1, length: .max)) != nil, "one alone may be longer")
        #expect(long.add(put(2, length: .max)) == nil)
    }

    @Test("compacted it says the same in fewer bytes")
    func compacting() {
        var outbox = Outbox()
        for number in 0..<2_000 { _ = outbox.add(put(number)) }
        #expect(!outbox.needsCompaction)
        for number in 0..<1_990 { _ = outbox.finish(put(number)) }
        #expect(outbox.needsCompaction)
        let bytes = outbox.compacted()
        #expect(bytes.count == 10 * OutboxRecord.size)
        #expect(Outbox(reading: bytes).pending == outbox.pending)
    }

    @Test("noise is no work")
    func noise() {
        let outbox = Outbox(reading: SeededGenerator.bytes(100_000, seed: 5))
        #expect(outbox.count == 0)
        #expect(outbox.damagedRecords == outbox.fileRecords)
    }
}
