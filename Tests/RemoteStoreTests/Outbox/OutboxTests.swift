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

    private func outbox(
        reading bytes: [UInt8],
        _ limits: Outbox.Limits = Outbox.Limits()
    ) -> Outbox {
        var outbox = Outbox(limits)
        for record in OutboxRecord.all(in: bytes).records { outbox.read(record) }
        return outbox
    }

    private func done(_ record: OutboxRecord) -> OutboxRecord {
        OutboxRecord(number: record.number, entry: record.entry, work: .done)
    }

    @Test("records survive the round trip")
    func records() {
        let entry = Digest(ofKey: "k")
        for record in [
            put(1), OutboxRecord(number: .max, entry: entry, work: .remove),
            OutboxRecord(number: 0, entry: entry, work: .done),
            OutboxRecord(number: 8, entry: entry, work: .doubt(until: 12)),
            OutboxRecord(number: 9, entry: entry, work: .certain(until: .max)),
        ] {
            #expect(record.encoded().count == OutboxRecord.size)
            #expect(OutboxRecord(decoding: record.encoded().span) == record)
        }
    }

    @Test("a record with any changed bit is rejected")
    func damaged() {
        let bytes = put(1).encoded()
        for bit in 0..<bytes.count * 8 {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(OutboxRecord(decoding: changed.span) == nil)
        }
    }

    @Test("the next process finds the pending records of a killed one, in order")
    func reading() {
        let outbox = outbox(reading: file((0..<10).map { put($0) } + [done(put(3)), done(put(7))]))
        #expect(outbox.pending == [0, 1, 2, 4, 5, 6, 8, 9].map { put($0) })
        #expect(outbox.waitingBytes == 80)
    }

    @Test("later work on a key replaces earlier work, whose end has no effect")
    func replacing() {
        var outbox = outbox(reading: file([put(1, "a"), put(2, "b"), put(3, "a", length: 7)]))
        #expect(outbox.pending == [put(2, "b"), put(3, "a", length: 7)])
        #expect(outbox.waitingBytes == 17)
        outbox.read(done(put(1, "a")))
        #expect(outbox.count == 2)
        let removal = OutboxRecord(number: 4, entry: Digest(ofKey: "b"), work: .remove)
        outbox.read(removal)
        #expect(outbox.pending.last == removal && outbox.waitingBytes == 7)
    }

    @Test("an earlier change that is recorded later does not replace a later one")
    func overtaking() {
        let removal = OutboxRecord(number: 4, entry: Digest(ofKey: "a"), work: .remove)
        #expect(outbox(reading: file([removal, put(3, "a")])).pending == [removal])
    }

    @Test("a truncated file loses only the truncated records, and later ones are found")
    func cutOff() {
        let whole = file([put(1), put(2), put(3)])
        for length in 0...whole.count {
            let cut = Array(whole.prefix(length))
            let outbox = outbox(reading: cut + put(4).encoded())
            let kept = (1...3).filter { $0 * OutboxRecord.size <= length }
            #expect(outbox.pending == (kept + [4]).map { put($0) })
        }
    }

    @Test("damage affects only the damaged records")
    func damageInside() {
        var bytes = file([put(1), put(2), put(3)])
        bytes[OutboxRecord.size + 50] ^= 1
        #expect(outbox(reading: bytes).pending == [put(1), put(3)])
    }

    @Test("records beyond the limits are refused, also from other files")
    func bounds() {
        var limits = Outbox.Limits()
        limits.records = 3
        limits.bytes = 25
        var outbox = Outbox(limits)
        func refuses(_ record: OutboxRecord) -> Bool {
            let before = outbox.refusedRecords
            outbox.read(record)
            return outbox.refusedRecords > before
        }
        #expect(!refuses(put(1)))
        #expect(!refuses(put(2)))
        #expect(refuses(put(3)), "too many bytes")
        #expect(!refuses(put(3, length: 1)))
        #expect(refuses(put(4, length: 0)), "too many records")
        #expect(!refuses(put(5, "key 1", length: 12)), "takes the place of another")
        let read = self.outbox(reading: file((0..<100).map { put($0, length: 5) }), limits)
        #expect(read.count == 3 && read.waitingBytes == 15)
        outbox = Outbox(limits)
        #expect(!refuses(put(1, length: .max)), "one alone may be longer")
        #expect(refuses(put(2, length: .max)))
    }

    @Test("a compacted outbox has the same meaning in fewer bytes")
    func compacting() {
        var outbox = Outbox()
        for number in 0..<2_000 { outbox.read(put(number)) }
        #expect(!outbox.needsCompaction)
        for number in 0..<1_990 { outbox.read(done(put(number))) }
        #expect(outbox.needsCompaction)
        let bytes = outbox.compacted()
        #expect(bytes.count == 10 * OutboxRecord.size)
        #expect(OutboxRecord.net([put(1), done(put(1))]).isEmpty)
        #expect(self.outbox(reading: bytes).pending == outbox.pending)
    }

    @Test("an outbox with many pending records is compacted if that makes it shorter by an eighth")
    func compactingManyPending() {
        for (keys, isCompacted) in [(60_000, true), (65_000, false)] {
            var outbox = Outbox()
            for number in 0..<72_000 { outbox.read(put(number, "key \(number % keys)")) }
            #expect(outbox.count == keys && outbox.needsCompaction == isCompacted)
        }
    }

    @Test("a doubt lasts until a record ends it, also across compaction")
    func doubts() {
        let key = Digest(ofKey: "key 1")
        func doubt(_ moment: Int64) -> OutboxRecord {
            OutboxRecord(number: OutboxRecord.freshNumber(), entry: key, work: .doubt(until: moment))
        }
        func certain(_ moment: Int64) -> OutboxRecord {
            OutboxRecord(number: OutboxRecord.freshNumber(), entry: key, work: .certain(until: moment))
        }
        var outbox = outbox(reading: file([put(1), doubt(20), doubt(10), done(put(1))]))
        #expect(outbox.doubts == [key: 20] && outbox.count == 0)
        outbox = self.outbox(reading: outbox.compacted())
        #expect(outbox.doubts == [key: 20])
        outbox.read(certain(19))
        #expect(outbox.doubts == [key: 20])
        outbox.read(certain(20))
        #expect(outbox.doubts.isEmpty)
        let records = [put(1), doubt(20), done(put(1)), certain(20)]
        #expect(OutboxRecord.net(records).map(\.work) == [.doubt(until: 20), .certain(until: 20)])
    }

    @Test("the number of doubts is limited like that of records")
    func doubtLimit() {
        var limits = Outbox.Limits()
        limits.records = 2
        let doubts = (0..<3).map {
            OutboxRecord(number: UInt64($0), entry: Digest(ofKey: "\($0)"), work: .doubt(until: 5))
        }
        let outbox = outbox(reading: file(doubts), limits)
        #expect(outbox.doubts.count == 2 && outbox.refusedRecords == 1)
    }

    @Test("random bytes contain no work")
    func noise() {
        #expect(outbox(reading: SeededGenerator.bytes(100_000, seed: 5)).count == 0)
    }
}
