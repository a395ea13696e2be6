// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Values in packs.
///
/// Two `Packs` on one directory behave like two processes.
@Suite(.takesTurns) struct PacksTests {
    let directory: TemporaryDirectory
    let created = Timestamp(nanoseconds: 1_790_000_000_123_000_000)

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(buckets: Int = 64, packs: Int = 8) throws -> Packs {
        try Packs(in: Directory(opening: directory.path), bucketCount: buckets, packCount: packs)
    }

    private func record(_ key: Digest) -> Record {
        Record(content: Content(digest: key, length: 0, checksum: 0), created: created)
    }

    private func put(_ value: String, _ key: String, _ packs: Packs) throws -> Bool {
        let digest = Digest(ofKey: key)
        return try packs.put(value.utf8Span.span, for: digest, record(digest))
    }

    private func get(_ key: String, _ packs: Packs) throws -> String? {
        try packs.get(Digest(ofKey: key)).map { String(decoding: $0.value, as: UTF8.self) }
    }

    @Test func `a value is stored, replaced and removed, in all processes`() throws {
        let (one, other) = (try open(), try open())
        #expect(try get("key", one) == nil)
        #expect(try put("first", "key", one))
        #expect(try get("key", other) == "first")
        #expect(try put("second", "key", other))
        #expect(try get("key", one) == "second")
        #expect(try one.remove(Digest(ofKey: "key")))
        #expect(try get("key", other) == nil)
        #expect(try !other.remove(Digest(ofKey: "key")))
        #expect(try put("", "key", one))
        #expect(try get("key", other)?.isEmpty == true)
    }

    @Test func `terms are kept`() throws {
        let (packs, key) = (try open(), Digest(ofKey: "key"))
        var record = record(key)
        record.expires = created + .seconds(3600)
        record.staleFor = .seconds(60)
        record.key = "key"
        record.details.tags = ["a", "b"]
        record.details.metadata = ["name": "value"]
        _ = try packs.put([1, 2, 3].span, for: key, record)
        let found = try #require(try packs.get(key))
        #expect(Array(found.value) == [1, 2, 3])
        #expect(found.record.expires == record.expires && found.record.staleFor == record.staleFor)
        #expect(found.record.key == "key" && found.record.details == record.details)
    }

    @Test func `an overwrite takes one system call, and a get none`() throws {
        let packs = try open()
        _ = try put("first", "key", packs)
        _ = try get("key", packs)
        let calls = Locked<[SystemCall]>.Box([])
        func counting(_ body: () throws -> Void) rethrows -> [SystemCall] {
            calls.value.withLock { $0 = [] }
            try SystemCall.withFaults(
                { call in
                    calls.value.withLock { $0.append(call) }
                    return nil
                },
                body
            )
            return calls.value.withLock { $0 }
        }
        #expect(try counting { _ = try put("second", "key", packs) } == [.write])
        #expect(try counting { _ = try get("key", packs) } == [])
        #expect(try get("key", packs) == "second")
    }

    @Test func `many values fill several packs, and are found again`() throws {
        let packs = try open(buckets: 1000, packs: 8)
        let text = String(repeating: "x", count: 1000)
        for number in 0..<5000 { #expect(try put("\(number) \(text)", "key \(number)", packs)) }
        let other = try open(buckets: 1000, packs: 8)
        for number in 0..<5000 { #expect(try get("key \(number)", other) == "\(number) \(text)") }
    }

    @Test func `without a free pack nothing is stored and the old value stays`() throws {
        let (packs, text) = (try open(packs: 1), String(repeating: "x", count: 30_000))
        var count = 0
        while try put("\(count) \(text)", "key \(count)", packs) { count += 1 }
        #expect(count > 30)
        #expect(try !put(text, "key 0", packs))
        for number in 0..<count { #expect(try get("key \(number)", packs) == "\(number) \(text)") }
        #expect(try put("short", "key 0", packs) == false)
        #expect(try get("key 0", packs) == "0 \(text)")
    }

    @Test func `in a full bucket a new key takes the word of another one`() throws {
        let packs = try open(buckets: 1)
        for number in 0..<40 { #expect(try put("\(number)", "key \(number)", packs)) }
        let found = try (0..<40).filter { number in
            let value = try get("key \(number)", packs)
            #expect(value == nil || value == "\(number)")
            return value != nil
        }
        #expect(found.count == PackLayout.bucketCapacity && found.last == 39)
    }

    @Test func `a reclaimed pack keeps what is wanted, and is written again`() throws {
        let (packs, text) = (try open(packs: 2), String(repeating: "x", count: 30_000))
        var count = 0
        while count < 40 {
            #expect(try put("\(count) \(text)", "key \(count)", packs))
            count += 1
        }
        #expect(try put("new", "key 3", packs))
        #expect(try packs.remove(Digest(ofKey: "key 4")))
        // A record can be told from its word alone here: the first ten start below this offset.
        let outcome = try #require(try packs.reclaim(pack: 0) { $0.offset < 10 * 30_080 })
        #expect(outcome.moved == 8 && outcome.evicted > 10)
        #expect(try get("key 3", packs) == "new" && get("key 4", packs) == nil)
        for number in [0, 1, 2, 5, 6, 7, 8, 9] {
            #expect(try get("key \(number)", packs) == "\(number) \(text)")
        }
        #expect(try get("key 12", packs) == nil)
        #expect(try packs.reclaim(pack: 0, keeps: { _ in true }) == nil)
        // The other pack is full soon; then the freed one is used.
        for number in 50..<70 { #expect(try put("\(number) \(text)", "key \(number)", packs)) }
        #expect(try get("key 69", packs) == "69 \(text)" && get("key 0", packs) == "0 \(text)")
    }

    @Test func `the pack of a living process is left alone, and that of a dead one is taken over`() throws {
        let other = try open()
        do {
            let packs = try open()
            #expect(try put("value", "key", packs))
            #expect(try other.reclaim(pack: 0, keeps: { _ in true }) == nil)
            #expect(try get("key", packs) == "value")
        }
        // As a killed process leaves it: open, and not locked.
        let index = try PackIndex.open(
            in: Directory(opening: directory.path + "/packs"),
            bucketCount: 64,
            packCount: 8
        )
        let state = index.state(ofPack: 0)
        #expect(state.use == .full)
        #expect(index.replace(state, by: PackState(.open, sequence: state.sequence), ofPack: 0))
        #expect(try other.reclaim(pack: 0, keeps: { _ in true }) == Packs.Reclaimed(moved: 1))
        #expect(try get("key", other) == "value")
        #expect(index.state(ofPack: 0).use == .free)
    }

    /// Leaves two words of "key", as two puts of a new key at the same time do: "first" is hidden by "second".
    ///
    /// "second" is in pack 1, whose writer has ended it.
    private func hideFirstValue(in packs: Packs) throws {
        let index = try PackIndex.open(
            in: Directory(opening: directory.path + "/packs"),
            bucketCount: 64,
            packCount: 8
        )
        #expect(try put("first", "key", packs))
        let position = index.bucket(of: Digest(ofKey: "key"))
        let first = index.word(at: position)
        #expect(index.replace(first, by: .empty, at: position))
        #expect(try put("second", "key", open()))
        #expect(index.replace(.empty, by: first, at: position + 3))
        #expect(try get("key", packs) == "second")
    }

    @Test func `a remove also removes a hidden value`() throws {
        let packs = try open()
        try hideFirstValue(in: packs)
        #expect(try packs.remove(Digest(ofKey: "key")))
        #expect(try get("key", packs) == nil)
    }

    @Test func `an eviction does not bring a hidden value to light`() throws {
        let packs = try open()
        try hideFirstValue(in: packs)
        #expect(try packs.reclaim(pack: 1, keeps: { _ in false }) == Packs.Reclaimed(evicted: 1))
        #expect(try get("key", packs) == nil)
    }

    @Test func `a move leaves a hidden value hidden`() throws {
        let packs = try open()
        try hideFirstValue(in: packs)
        #expect(try packs.reclaim(pack: 1, keeps: { _ in true }) == Packs.Reclaimed(moved: 1))
        #expect(try get("key", packs) == "second")
        #expect(try packs.remove(Digest(ofKey: "key")))
        #expect(try get("key", packs) == nil)
    }

    @Test func `a changed byte of a pack is never returned`() throws {
        let packs = try open()
        #expect(try put("value", "key", packs))
        let path = "\(directory.path)/packs/pack-0"
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path)).prefix(160)
        let file = try FileDescriptor(opening: path, .readWrite)
        for offset in 64..<64 + 48 + 7 + 5 {
            let damaged: [UInt8] = [bytes[offset] ^ 0x40]
            try file.write(damaged.span, at: offset)
            #expect(try get("key", packs) == nil, "byte \(offset)")
            try file.write([bytes[offset]].span, at: offset)
        }
        #expect(try get("key", packs) == "value")
    }

    @Test func `an index of another kind is refused`() throws {
        _ = try open()
        let path = "\(directory.path)/packs/index"
        for (offset, byte) in [(0, UInt8(1)), (8, 9), (16, 255), (24, 255)] {
            let file = try FileDescriptor(opening: path, .readWrite)
            let old = try Data(contentsOf: URL(fileURLWithPath: path))[offset]
            try file.write([byte].span, at: offset)
            #expect(throws: Errno.badMessage) { try open() }
            try file.write([old].span, at: offset)
        }
        _ = try open()
        try FileDescriptor(opening: path, .readWrite).truncate(to: 4096)
        #expect(throws: Errno.badMessage) { try open() }
    }

    @Test func `words are never valid in a pack that was begun again`() throws {
        let word = PackWord(of: Digest(ofKey: "key"), pack: 3, sequence: 18, offset: 64 * 5, minute: 77)
        #expect(
            word.pack == 3 && word.sequence == 2 && word.offset == 320 && word.minute == 77 && word.uses == 0
        )
        #expect(word.used(at: 78).used(at: 78).used(at: 78).used(at: 78).uses == 3)
        #expect(word.used(at: 78).identity == word.identity && word.identity != 0)
    }

    /// Values are counters.
    ///
    /// Each key has one writer, so a get that begins after a put has returned must not return less.
    @Test func `no get returns an older value than the latest one that was put before`() throws {
        // More keys than the bucket has words: they take words from each other.
        let keys = (0..<18).map { Digest(ofKey: "key \($0)") }
        let processes = try (0..<4).map { _ in try open(buckets: 1, packs: 6) }
        let latest = keys.map { _ in Locked<Int>.Box(0) }
        let (faults, found, ended) = (Locked<[String]>.Box([]), Locked<Int>.Box(0), Locked<Int>.Box(0))
        onThreads(processes.count) { process in
            do {
                if process == 3 {
                    return try reclaimAll(by: processes[3], until: { ended.value.withLock { $0 == 3 } })
                }
                defer { ended.value.withLock { $0 += 1 } }
                try churn(keys, latest, by: process, in: processes[process]) { key, value, least in
                    found.value.withLock { $0 += 1 }
                    if value < least {
                        faults.value.withLock { $0.append("\(key): \(value) after \(least)") }
                    }
                }
            } catch {
                faults.value.withLock { $0.append("\(error)") }
            }
        }
        #expect(faults.value.withLock { $0 } == [])
        #expect(found.value.withLock { $0 } > 1000)
    }

    /// Reclaims pack after pack, and keeps two of three records.
    private func reclaimAll(by packs: Packs, until isOver: () -> Bool) throws {
        var count = 0
        while !isOver() {
            for row in 0..<6 {
                _ = try packs.reclaim(pack: row) { _ in
                    count += 1
                    return count % 3 != 0
                }
            }
        }
    }

    /// Puts and removes a third of the keys, and gets all of them; passes each value that it has found to `check`, with the
    /// latest one that was put before.
    private func churn(
        _ keys: [Digest],
        _ latest: [Locked<Int>.Box],
        by process: Int,
        in packs: Packs,
        _ check: (Int, Int, Int) -> Void
    ) throws {
        var generator = SeededGenerator(seed: UInt64(process))
        for count in 1...6000 {
            let own = Int.random(in: 0..<keys.count / 3, using: &generator) * 3 + process
            let padding = String(repeating: "x", count: Int.random(in: 0..<3000, using: &generator))
            if count % 7 == 0 { _ = try packs.remove(keys[own]) }
            // The packs are reclaimed all the time; a put that finds none must be made again.
            while try !packs.put("\(count) \(padding)".utf8Span.span, for: keys[own], record(keys[own])) {
                sleepThread(for: .microseconds(50))
            }
            latest[own].value.withLock { $0 = count }
            let key = Int.random(in: 0..<keys.count, using: &generator)
            let least = latest[key].value.withLock { $0 }
            guard let found = try packs.get(keys[key]) else { continue }
            let number = String(decoding: found.value, as: UTF8.self).prefix { $0 != " " }
            check(key, Int(number) ?? -1, least)
        }
    }
}
