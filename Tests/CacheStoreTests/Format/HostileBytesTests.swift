// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Parsers of files that other processes can write must handle any bytes.
///
/// Most tests feed a parser 3,000 changed inputs, or 300,000 with `DISKCACHE_SOAK=1`.
@Suite(.takesTurns) struct HostileBytesTests {
    private static let seed: UInt64 = 11
    private static let rounds = isSoak ? 300_000 : 3_000

    private static let numbers: [UInt64] = [
        0, 1, .max, 0x8000_0000_0000_0000, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0001, 0x100_0000_0000_0001,
        0x4000_0000_0000_0000,
    ]

    /// The bytes that are inserted: extreme numbers in the encodings that the files use.
    private static let pieces: [[UInt8]] = {
        var pieces: [[UInt8]] = [[UInt8](repeating: 0xff, count: 9) + [1], [0], [0xff]]
        for text in ["\n", " ", "[[{\""] { pieces.append(Array(text.utf8)) }
        for number in numbers {
            pieces.append(withUnsafeBytes(of: number.littleEndian) { Array($0) })
            pieces.append(Array("\(number)".utf8))
            pieces.append(Array("\(Int64(bitPattern: number))".utf8))
        }
        return pieces
    }()

    /// Runs `body` with each of `seeds`, and with copies of them that have a few random changes.
    private func mutate(_ seeds: [[UInt8]], _ body: ([UInt8]) throws -> Void) rethrows {
        var generator = SeededGenerator(seed: Self.seed)
        for seed in seeds { try body(seed) }
        for _ in 0..<Self.rounds {
            var bytes = seeds[Int.random(in: 0..<seeds.count, using: &generator)]
            for _ in 0..<Int.random(in: 1...4, using: &generator) { change(&bytes, &generator) }
            try body(bytes)
        }
    }

    private func change(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        let place = Int.random(in: 0...bytes.count, using: &generator)
        switch Int.random(in: 0..<5, using: &generator) {
        case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 1: bytes.removeSubrange(place...)
        case 2:
            let piece = Self.pieces.randomElement(using: &generator) ?? []
            bytes.replaceSubrange(place..<min(bytes.count, place + piece.count), with: piece)
        case 3: bytes.insert(contentsOf: Self.pieces.randomElement(using: &generator) ?? [], at: place)
        default:
            let end = Int.random(in: place...bytes.count, using: &generator)
            bytes.insert(contentsOf: bytes[place..<end], at: place)
        }
    }

    @Test func `no changed record causes a trap`() {
        let key = Digest(ofKey: "key")
        var record = Record(content: Content(of: Array("value".utf8).span), created: .now)
        let plain = record.encoded(for: key)
        record.expires = .now + .seconds(60)
        record.idleLifetime = .seconds(30)
        record.staleFor = .seconds(30)
        record.cost = .seconds(3)
        record.key = "key"
        record.details.tags = ["a", "b"]
        record.details.metadata = ["name": "value"]
        var understood = 0
        mutate([plain, record.encoded(for: key)]) { bytes in
            guard let record = Record(decoding: bytes, for: key) else { return }
            understood += 1
            // The operations on a record, at times across the whole range.
            for now in [Timestamp.now, .distantPast, .distantFuture] {
                for accessed in [Timestamp.now, .distantPast, .distantFuture] {
                    _ = record.freshness(at: now, accessed: accessed)
                    _ = record.lastUse(accessed: accessed, now: now)
                }
            }
            _ = record.heldUntil
            _ = record.latestUncountedAccess
            #expect(Record(decoding: record.encoded(for: key), for: key) != nil)
        }
        #expect(understood > 10)
    }

    @Test func `no changed configuration is accepted with a problem`() throws {
        let text = #"""
            {"maximumSize": 2147483648, "maximumEntries": 100000, "minimumFree": "12.5%", "maximumAge": 0.5,
             "maximumIdleTime": 604800, "eventLog": 1048576, "later": {"a": [1, 2.5, "x[\"", null, true, {}]}}
            """#
        mutate([Array(text.utf8), Array("{}".utf8)]) { bytes in
            guard let configuration = try? DirectoryConfiguration(json: bytes) else { return }
            #expect(configuration.problem == nil, "\(String(decoding: bytes, as: UTF8.self))")
        }
    }

    @Test func `a deeply nested configuration is rejected on a thread with a small stack`() throws {
        func nested(_ depth: Int) -> [UInt8] {
            let (open, close) = (String(repeating: "[", count: depth), String(repeating: "]", count: depth))
            return Array("{\"a\": \(open)\(close)}".utf8)
        }
        // Brackets in a string do not count, and an escaped quote hides no bracket after the string.
        let inText = Array(#"{"a": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[["}"#.utf8)
        let texts: [[UInt8]] = [
            nested(10), inText, nested(300), nested(30_000), Array(#"{"\"": "#.utf8) + nested(300),
        ]
        let outcomes = Locked<[Bool]>([])
        let thread = Thread {
            for text in texts {
                let isRead = (try? DirectoryConfiguration(json: text)) != nil
                outcomes.withLock { $0.append(isRead) }
            }
        }
        thread.stackSize = 512 * 1024
        thread.start()
        while !thread.isFinished { usleep(1000) }
        #expect(outcomes.withLock { $0 } == [true, true, false, false, false])
        #expect(throws: JSONProblem.self) {
            try DirectoryConfiguration(json: Array("{}".utf16).flatMap { [UInt8($0), 0] })
        }
    }

    @Test func `no changed sweep record causes a trap or an overflow`() {
        let text = """
            sweep 1
            process 1234
            began 1700000000000000000
            ended 1700000001000000000
            busy 90000000
            scope full
            complete yes
            full 1700000000000000000
            cost 90000000
            removed expired 12 49152
            removed size 3 4
            entries 100 0
            objects 90 368640
            horizon 3600000000000
            drift -2 8192
            end

            """
        var understood = 0
        mutate([Array(text.utf8)]) { bytes in
            guard let record = SweepRecord(text: String(decoding: bytes, as: UTF8.self)) else { return }
            understood += 1
            // The sums, signs and differences that a display of the record computes.
            let removed = record.report.removed.values
            #expect(removed.reduce(0) { $0 + $1.bytes } < .max && removed.reduce(0) { $0 + $1.count } < .max)
            _ = (record.report.drift.map { abs($0.count) }, record.report.drift.map { abs($0.bytes) })
            _ = (Timestamp.now - record.began, record.ended.map { $0 - record.began })
            #expect(record.report.worked >= .zero && record.report.evictionAge ?? .zero >= .zero)
            #expect(SweepRecord(text: record.text)?.text == record.text)
        }
        #expect(understood > 10)
    }

    @Test func `no changed candidate list causes a trap or a negative size`() throws {
        let fixture = try StoreFixture()
        let root = fixture.store.directory
        let entry = SeenEntry(
            key: Digest(ofKey: "k"),
            content: Digest(ofKey: "v"),
            lastUse: .now,
            allocatedSize: AllocatedSize(bytes: 4096),
            inode: 7,
            witness: 8
        )
        let candidates = [ListedCandidate](
            repeating: ListedCandidate(entry: entry, objectSize: AllocatedSize(bytes: 4096)),
            count: 3
        )
        let clock = ClockCheck(time: .now, uptime: .seconds(9))
        let stamp = SweepStamp(time: .now, clock: clock, datesAttributes: true)
        CandidateList(stamp: stamp, count: 3).write(candidates, in: root)
        let path = fixture.path + "/candidates"
        let good = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        var understood = 0
        try mutate([good]) { bytes in
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            guard let file = CandidateList.open(in: root) else { return }
            guard let list = try CandidateList(in: file, datesAttributes: true) else { return }
            understood += 1
            for candidate in try list.next(100, in: file) {
                #expect(candidate.entry.allocatedSize.bytes + candidate.objectSize.bytes >= 0)
            }
        }
        #expect(understood > 10)
    }

    @Test func `a changed event log line never yields a key with another digest`() throws {
        let lines = [
            LoggedKey(digest: Digest(ofKey: "a\nb"), name: "a\nb"),
            LoggedKey(digest: Digest(ofKey: "c"), name: nil),
        ]
        .map { key in
            var bytes: [UInt8] = []
            LoggedRemoval(time: .now, process: 7, cause: .collected(.size), key: key).append(to: &bytes)
            return bytes
        }
        mutate(lines) { line in
            guard let event = LoggedRemoval(Array(line.split(separator: 10).first ?? [])) else { return }
            if let name = event.key { #expect(Digest(ofKey: name) == event.keyDigest) }
        }
    }

    @Test func `an event log with a hole of a terabyte and an endless line is read to its end`() throws {
        let fixture = try StoreFixture()
        let log = EventLog(in: fixture.store.directory, limit: EventLog.smallestLimit)
        log.append([LoggedKey(digest: Digest(ofKey: "first"), name: "first")], cause: .removed)
        let path = fixture.path + "/events"
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 1 << 40)
        try file.seekToEnd()
        try file.write(contentsOf: Data(repeating: UInt8(ascii: "x"), count: 3 << 20))
        let second = LoggedRemoval(
            time: .now,
            process: 7,
            cause: .removed,
            key: LoggedKey(digest: Digest(ofKey: "second"), name: nil)
        )
        var line = Array("\n".utf8)
        second.append(to: &line)
        try file.write(contentsOf: line)
        var found: [Digest] = []
        #expect(try EventLog.forEach(in: fixture.store.directory) { found.append($0.keyDigest) })
        #expect(found == [Digest(ofKey: "first"), Digest(ofKey: "second")])
    }

    @Test func `a changed holder line never yields a negative time`() {
        let line = ComputingProcess(4711, since: .now).line
        mutate([line]) { bytes in
            if let holder = ComputingProcess(line: bytes) {
                #expect(holder.moment >= Timestamp(nanoseconds: 0))
            }
        }
    }

    @Test func `a changed format file either opens or is a typed error`() throws {
        let fixture = try StoreFixture()
        let path = fixture.path + "/format"
        var generator = SeededGenerator(seed: Self.seed)
        for _ in 0..<100 {
            var bytes = Array("diskcache 1\n".utf8)
            change(&bytes, &generator)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            do {
                _ = try StoreDirectory(opening: fixture.path)
            } catch {
                #expect(error.code == .notACache || error.code == .newerFormat, "\(error)")
            }
        }
    }

    @Test func `extreme numbers in any word of the control file cause no trap or overflow`() throws {
        let fixture = try StoreFixture()
        try fixture.put("v", "k")
        let words = try #require(fixture.store.control.writableWords)
        let places = Array(3...19) + [128, 200, 256, 511, 512, 512 + 41, 1535]
        for place in places {
            let before = words.load(place)
            for value in Self.numbers {
                words.store(value, at: place)
                let store = fixture.store
                if let usage = store.control.usage {
                    #expect(abs(usage.bytes) <= 1 << 56 && abs(usage.entries) <= 1 << 56)
                }
                #expect(store.overhead >= 0 && store.overhead <= 1 << 56)
                let claimed = store.control.claimedBytes
                let usage = store.control.usage?.plausibleBytes ?? 0
                #expect(claimed >= 0)
                #expect(claimed + usage + store.overhead > 0)
                var limits = CacheLimits()
                limits.maximumSize = .gibibytes(1024)
                limits.maximumEntries = 100
                if let occupancy = try store.occupancy(limits) {
                    _ = (limits.excess(of: occupancy), limits.overflow(of: occupancy))
                }
                _ = (store.control.horizon, store.control.expectedHorizon, store.control.replacedEntries)
                if let counts = store.cumulative {
                    #expect(StoreCounters.Event.allCases.allSatisfy { counts[$0] >= 0 })
                }
                store.followConfiguration()
                store.control.claim(4096)?.giveBack()
                #expect(try fixture.get("k").map { $0 == "v" } ?? true)
            }
            words.store(before, at: place)
        }
    }
}
