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
        let store = try StoreFixture.open(directory.path + "/cache")
        return try Packs(
            in: store.directory,
            stripes: store.entries.stripes,
            bucketCount: buckets,
            packCount: packs
        )
    }

    private func openIndex() throws -> PackIndex {
        let folder = try Directory(opening: directory.path + "/cache/packs")
        return try PackIndex.open(in: folder, bucketCount: 64, packCount: 8)
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

    @Test func `a full bucket takes no other key, until one is removed`() throws {
        let (packs, capacity) = (try open(buckets: 1), PackLayout.bucketCapacity)
        for number in 0..<capacity { #expect(try put("\(number)", "key \(number)", packs)) }
        #expect(try !put("more", "key \(capacity)", packs))
        #expect(try put("new", "key 3", packs))
        for number in 0..<capacity {
            #expect(try get("key \(number)", packs) == (number == 3 ? "new" : "\(number)"))
        }
        #expect(try packs.remove(Digest(ofKey: "key 5")))
        #expect(try put("more", "key \(capacity)", packs))
        #expect(try get("key \(capacity)", packs) == "more")
    }

    @Test func `reclaiming a pack moves the records to keep, evicts the others and frees the pack`() throws {
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
        #expect(outcome == Packs.Reclaimed(moved: 8, evicted: 24))
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
        let index = try openIndex()
        let state = index.state(ofPack: 0)
        #expect(state.use == .full)
        #expect(index.replace(state, by: PackState(.open, sequence: state.sequence), ofPack: 0))
        #expect(try other.reclaim(pack: 0, keeps: { _ in true }) == Packs.Reclaimed(moved: 1))
        #expect(try get("key", other) == "value")
        #expect(index.state(ofPack: 0).use == .free)
    }

    @Test func `a word is not current in a pack that was started again`() throws {
        let packs = try open()
        #expect(try put("value", "key", packs))
        let index = try openIndex()
        let position = index.bucket(of: Digest(ofKey: "key"))
        let word = index.word(at: position)
        #expect(index.isCurrent(word) && index.accepts(word))
        let state = index.state(ofPack: 0)
        for use in [PackState.Use.free, .open, .full, .reclaimed] {
            let present = index.state(ofPack: 0)
            #expect(index.replace(present, by: PackState(use, sequence: state.sequence), ofPack: 0))
            #expect(index.isCurrent(word) == (use != .free))
            #expect(index.accepts(word) == (use == .open || use == .full))
        }
        let present = index.state(ofPack: 0)
        #expect(index.replace(present, by: PackState(.full, sequence: state.sequence + 1), ofPack: 0))
        #expect(try !index.isCurrent(word) && get("key", packs) == nil)
    }

    @Test func `a put into a pack that is being reclaimed goes to another one`() throws {
        let (packs, index) = (try open(), try openIndex())
        #expect(try put("first", "key", packs))
        let state = index.state(ofPack: 0)
        #expect(index.replace(state, by: PackState(.reclaimed, sequence: state.sequence), ofPack: 0))
        #expect(try put("second", "key", packs))
        #expect(index.word(at: index.bucket(of: Digest(ofKey: "key"))).pack == 1)
        #expect(try get("key", packs) == "second")
        // As after the death of the process that has reclaimed it.
        #expect(try packs.reclaim(pack: 0, keeps: { _ in true }) == Packs.Reclaimed())
        #expect(index.state(ofPack: 0).use == .free)
    }

    @Test func `a word that names no record anymore is taken by another key`() throws {
        let (packs, index) = (try open(buckets: 1), try openIndex())
        for number in 0..<PackLayout.bucketCapacity { #expect(try put("\(number)", "key \(number)", packs)) }
        #expect(try packs.reclaim(pack: 0, keeps: { _ in true }) == nil)
        let dead = PackWord(of: Digest(ofKey: "x"), pack: 7, sequence: 3, offset: 64, minute: 0)
        let position = index.bucket(of: Digest(ofKey: "key 3")) + 3
        #expect(index.replace(index.word(at: position), by: dead, at: position))
        #expect(try put("new", "new", packs))
        #expect(try get("new", packs) == "new" && get("key 14", packs) == "14" && get("key 3", packs) == nil)
    }

    @Test func `a record behind a damaged one is moved, and the damaged one goes`() throws {
        let packs = try open()
        for number in 0..<3 { #expect(try put("value \(number)", "key \(number)", packs)) }
        let index = try openIndex()
        let offset = index.word(at: index.bucket(of: Digest(ofKey: "key 1"))).offset
        let file = try FileDescriptor(opening: directory.path + "/cache/packs/pack-0", .readWrite)
        // The length of the value.
        try file.write([255, 1].span, at: offset + 12)
        let state = index.state(ofPack: 0)
        #expect(index.replace(state, by: PackState(.full, sequence: state.sequence), ofPack: 0))
        #expect(try packs.reclaim(pack: 0, keeps: { _ in true }) == Packs.Reclaimed(moved: 2))
        #expect(try get("key 0", packs) == "value 0" && get("key 1", packs) == nil)
        #expect(try get("key 2", packs) == "value 2")
    }

    @Test func `terms that are too long are refused, and the old value stays`() throws {
        let (packs, key) = (try open(), Digest(ofKey: "key"))
        #expect(try put("value", "key", packs))
        var long = record(key)
        long.details.metadata = ["name": String(repeating: "x", count: Record.maximumSize)]
        #expect(try !packs.put([1].span, for: key, long))
        #expect(try get("key", packs) == "value")
    }

    /// Random words and bytes, as damage or another user of the directory may leave them.
    @Test func `no changed word or byte traps or returns a wrong value`() throws {
        let (packs, index) = (try open(buckets: 4), try openIndex())
        var generator = SeededGenerator(seed: 11)
        for number in 0..<30 { #expect(try put("value \(number)", "key \(number)", packs)) }
        let file = try FileDescriptor(opening: directory.path + "/cache/packs/pack-0", .readWrite)
        let bucket = index.bucket(of: Digest(ofKey: "key 0"))
        for round in 0..<3000 {
            switch round % 4 {
            case 0:
                try file.write(
                    [UInt8.random(in: 0...255, using: &generator)].span,
                    at: Int.random(in: 0..<4096, using: &generator)
                )
            case 1:
                let position = bucket + Int.random(in: 0..<16, using: &generator)
                let word = PackWord(
                    rawValue: index.word(at: position).rawValue
                        ^ (1 << UInt64.random(in: 0..<64, using: &generator))
                )
                _ = index.replace(index.word(at: position), by: word, at: position)
            case 2:
                let row = Int.random(in: 0..<8, using: &generator)
                let state = PackState(rawValue: UInt64.random(in: 0...0x3ff, using: &generator))
                _ = index.replace(index.state(ofPack: row), by: state, ofPack: row)
            default: break
            }
            let key = Int.random(in: 0..<30, using: &generator)
            if let value = try get("key \(key)", packs) { #expect(value == "value \(key)") }
            if round % 5 == 0 { _ = try put("value \(key)", "key \(key)", packs) }
            if round % 17 == 0 { _ = try packs.remove(Digest(ofKey: "key \(key)")) }
            if round % 29 == 0 {
                _ = try packs.reclaim(pack: Int.random(in: 0..<8, using: &generator)) { $0.minute % 2 == 0 }
            }
        }
    }

    @Test func `a changed byte of a pack is never returned`() throws {
        let packs = try open()
        #expect(try put("value", "key", packs))
        let path = "\(directory.path)/cache/packs/pack-0"
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
        let path = "\(directory.path)/cache/packs/index"
        for (offset, byte) in [(0, UInt8(1)), (8, 9), (16, 255), (24, 255)] {
            let file = try FileDescriptor(opening: path, .readWrite)
            let old = try Data(contentsOf: URL(fileURLWithPath: path))[offset]
            try file.write([byte].span, at: offset)
            #expect(throws: CacheError.self) { try open() }
            try file.write([old].span, at: offset)
        }
        _ = try open()
        try FileDescriptor(opening: path, .readWrite).truncate(to: 4096)
        #expect(throws: CacheError.self) { try open() }
    }

    @Test func `a word holds its parts`() {
        let word = PackWord(of: Digest(ofKey: "key"), pack: 3, sequence: 18, offset: 64 * 5, minute: 77)
        #expect(
            word.pack == 3 && word.sequence == 2 && word.offset == 320 && word.minute == 77 && word.uses == 0
        )
        #expect(word.used(at: 78).used(at: 78).used(at: 78).used(at: 78).uses == 3)
        #expect(word.used(at: 78).identity == word.identity && word.identity != 0)
    }

    /// Values are counters.
    ///
    /// Each key has one writer, so a get that begins after a put has returned must not return less, and a get of the writer
    /// finds nothing after a remove. Two of the threads share a `Packs`, and another one reclaims packs all the time.
    @Test func `no get returns a removed value, or an older one than was put before`() throws {
        // All share a bucket, which has a word for each.
        let keys = (0..<12).map { Digest(ofKey: "key \($0)") }
        let processes = try (0..<3).map { _ in try open(buckets: 1, packs: 6) }
        let latest = keys.map { _ in Locked<Int>.Box(0) }
        let (faults, found, ended) = (Locked<[String]>.Box([]), Locked<Int>.Box(0), Locked<Int>.Box(0))
        onThreads(5) { thread in
            do {
                if thread == 4 {
                    return try reclaimAll(by: processes[2], until: { ended.value.withLock { $0 == 4 } })
                }
                defer { ended.value.withLock { $0 += 1 } }
                try churn(keys, latest, by: thread, in: processes[thread / 2]) { fault in
                    if let fault { faults.value.withLock { $0.append(fault) } }
                    found.value.withLock { $0 += 1 }
                    return faults.value.withLock { $0.isEmpty }
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

    /// Puts and removes a quarter of the keys, and gets all of them.
    ///
    /// - Parameter goesOn: called with each result that is wrong, and with nil for each value that is right; returns whether
    ///   to go on.
    private func churn(
        _ keys: [Digest],
        _ latest: [Locked<Int>.Box],
        by thread: Int,
        in packs: Packs,
        _ goesOn: (String?) -> Bool
    ) throws {
        var generator = SeededGenerator(seed: UInt64(thread))
        for count in 1...5000 {
            let own = Int.random(in: 0..<keys.count / 4, using: &generator) * 4 + thread
            if count % 7 == 0 {
                _ = try packs.remove(keys[own])
                if try packs.get(keys[own]) != nil, !goesOn("\(own) is there after its remove") { return }
            }
            let padding = String(repeating: "x", count: Int.random(in: 0..<3000, using: &generator))
            // The packs are reclaimed all the time; a put that finds none must be made again.
            while try !packs.put(
                "\(own) \(count) \(padding)".utf8Span.span,
                for: keys[own],
                record(keys[own])
            ) {
                sleepThread(for: .microseconds(50))
                if !goesOn(nil) { return }
            }
            latest[own].value.withLock { $0 = count }
            let key = Int.random(in: 0..<keys.count, using: &generator)
            let least = latest[key].value.withLock { $0 }
            guard let found = try packs.get(keys[key]) else { continue }
            let numbers = String(decoding: found.value, as: UTF8.self).split(separator: " ").prefix(2).map {
                Int($0) ?? -1
            }
            let isRight = numbers.count == 2 && numbers[0] == key && numbers[1] >= least
            if !goesOn(isRight ? nil : "\(key): \(numbers) after \(least)") { return }
        }
    }
}

extension Packs {
    /// Stores a value as a put does.
    fileprivate func put(_ value: Span<UInt8>, for key: Digest, _ record: Record, minute: UInt16 = 0) throws
        -> Bool
    {
        if try replace(value, for: key, minute: minute, record: { record }) { return true }
        let lock = try stripes.lock(.exclusive, stripe: key.stripe)
        return try put(value, for: key, minute: minute, under: lock) { record }
    }

    fileprivate func remove(_ key: Digest) throws -> Bool {
        let lock = try stripes.lock(.exclusive, stripe: key.stripe)
        guard let word = try word(of: key) else { return false }
        return remove(word, of: key, under: lock)
    }
}
