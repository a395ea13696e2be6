// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Two stores on one directory, which behave like two processes.
@Suite(.takesTurns) struct GenerationTests {
    let fixture: StoreFixture
    let other: Store
    let key = Digest(ofKey: "key")

    init() throws {
        fixture = try StoreFixture()
        other = try StoreFixture.open(fixture.path)
    }

    private func generation(of key: Digest) throws -> Generation {
        try #require(fixture.store.generation(of: key))
    }

    private func isCurrent(_ generation: Generation) -> Bool {
        fixture.store.isCurrent(generation) == true
    }

    private func hit(now: Timestamp = .now, stale: Bool = false) throws -> StoreHit<Data> {
        try #require(try fixture.store.get(key, now: now, allowingStale: stale))
    }

    @discardableResult
    private func putByOther(_ value: String) throws -> Generation? {
        try other.put(Array(value.utf8).span, for: key, fixture.record(value))
    }

    // MARK: Words

    @Test func `a word counts writers and versions independently`() {
        var word = GenerationWord(version: 7).rawValue
        word &+= GenerationWord.begin
        word &+= GenerationWord.begin
        #expect(GenerationWord(rawValue: word).writers == 2)
        #expect(GenerationWord(rawValue: word).version == 7)
        word &+= GenerationWord.end
        #expect(GenerationWord(rawValue: word).writers == 1)
        #expect(GenerationWord(rawValue: word).version == 8)
        word &+= GenerationWord.raise
        #expect(GenerationWord(rawValue: word).writers == 1)
        word &+= GenerationWord.end
        #expect(GenerationWord(rawValue: word) == GenerationWord(version: 10))
        let dead = GenerationWord(rawValue: word &+ GenerationWord.begin)
        #expect(dead.cleared == GenerationWord(version: 11))
    }

    @Test func `the version wraps around without a change of the writers`() {
        let last = GenerationWord(version: 1 << 48 - 1).rawValue
        #expect(last &+ GenerationWord.begin &+ GenerationWord.end == 0)
    }

    @Test func `each word belongs to the stripe of its keys`() {
        for text in ["a", "b", "c", "d", "e"] {
            let key = Digest(ofKey: text)
            #expect(Generation.indices(ofStripe: key.stripe).contains(Generation.index(of: key)))
        }
        #expect(Generation.indices(ofStripe: 63).upperBound == ControlLayout.generationCount)
    }

    // MARK: A put in progress in this process

    @Test func `a put is the latest until another writer ends`() throws {
        let store = fixture.store
        let noted = try generation(of: key)
        #expect(store.isLatest(noted), "nobody writes")
        let own = try store.control.beginChange(of: key)
        #expect(store.isLatest(noted), "nobody has ended")
        own.end()
        #expect(store.isLatest(noted), "it has ended, and nobody else has begun")
        let others = try other.control.beginChange(of: key)
        #expect(!store.isLatest(noted), "another may have published")
        others.end()
        #expect(!store.isLatest(noted))
    }

    @Test func `a put that starts during another write is not known to be the latest`() throws {
        let store = fixture.store
        let others = try other.control.beginChange(of: key)
        let noted = try generation(of: key)
        #expect(store.isLatest(noted), "it is not written yet")
        let own = try store.control.beginChange(of: key)
        #expect(!store.isLatest(noted), "the other may have written over it by now")
        others.end()
        #expect(!store.isLatest(noted))
        own.end()
        #expect(!store.isLatest(noted))
    }

    @Test func `a put that waits while two others write and end is not known to be the latest`() throws {
        let noted = try generation(of: key)
        try putByOther("one")
        #expect(fixture.store.isLatest(noted), "it comes after that one, if it is not that one")
        try putByOther("two")
        #expect(!fixture.store.isLatest(noted))
        #expect(!fixture.store.isLatest(nil), "without a control file nothing is known")
    }

    @Test func `a put calls its closure right before it writes the entry`() throws {
        var seen: [Data?] = []
        try fixture.store.put(Array("mine".utf8).span, for: key, fixture.record("mine")) {
            do {
                try putByOther("theirs")
                seen.append(try fixture.store.get(key, now: .now, allowingStale: false)?.value)
            } catch {
                Issue.record(error)
            }
        }
        #expect(seen == [Data("theirs".utf8)], "others may come first until then")
        #expect(try hit().value == Data("mine".utf8))
    }

    // MARK: Writers

    @Test func `a value may be held until another store puts, rewrites or removes it`() throws {
        try fixture.put("one", "key")
        let changes: [(Store) throws -> Void] = [
            { try putIn($0, "two") },
            { store in
                let live = try #require(try store.liveEntry(key, now: .now, allowingStale: false))
                var record = live.record
                record.expires = .now + .seconds(60)
                #expect(try store.rewrite(record, for: key, ifStill: live.stored, now: .now).isWritten)
            },
            { store in
                let seen = try store.observe(key, now: .now).stored
                let record = fixture.record("three")
                #expect(
                    try store.put(Array("three".utf8).span, for: key, record, ifStill: seen).isWritten
                )
            },
            { store in
                let isRemoved = try store.remove(key)
                #expect(isRemoved)
            },
            { store in
                try putIn(store, "four")
                let generation = try #require(try hit().entry.generation)
                let seen = try #require(try store.observe(key, now: .now).stored)
                #expect(try store.remove(key, ifStill: seen))
                #expect(!isCurrent(generation))
            },
        ]
        for (index, change) in changes.enumerated() {
            let generation = try fixture.store.get(key, now: .now, allowingStale: false)?.entry.generation
            let held = try generation ?? self.generation(of: key)
            #expect(isCurrent(held))
            try change(other)
            #expect(!isCurrent(held), "change \(index)")
        }
    }

    private func putIn(_ store: Store, _ value: String) throws {
        try store.put(Array(value.utf8).span, for: key, fixture.record(value))
    }

    @Test func `a put returns the generation that hits have until the next put`() throws {
        let written = try #require(try putByOther("one"))
        #expect(try hit().entry.generation?.word == written.word)
        #expect(other.isCurrent(written) == true)
        try fixture.put("two", "key")
        #expect(other.isCurrent(written) == false)
        // Of another mapping, although of the same word.
        let foreign = try #require(try putByOther("three"))
        #expect(!isCurrent(foreign))
    }

    @Test func `operations without a change leave held values valid`() throws {
        try fixture.put("one", "key")
        let generation = try #require(try hit().entry.generation)
        let seen = try #require(try other.observe(key, now: .now).stored)
        let record = fixture.record("two")
        #expect(try other.put([1].span, for: key, record, ifStill: nil) == .conflict)
        #expect(isCurrent(generation))
        #expect(try other.touch(key) { .now })
        #expect(isCurrent(generation))
        try fixture.sweep { $0.limits.maximumEntries = 0 }
        #expect(fixture.entries.isEmpty)
        #expect(isCurrent(generation))
        #expect(try !other.remove(key, ifStill: seen))
        #expect(isCurrent(generation))
    }

    @Test func `removing an evicted key raises its generation, as others may hold the value`() throws {
        try fixture.put("one", "key")
        let generation = try #require(try hit().entry.generation)
        try fixture.sweep { $0.limits.maximumEntries = 0 }
        #expect(isCurrent(generation))
        #expect(try !other.remove(key))
        #expect(!isCurrent(generation))
    }

    @Test func `all versions can be raised at once without a change of the writers`() throws {
        let key = key
        let held = try generation(of: key)
        let writing = try other.control.beginChange(of: key)
        try fixture.store.control.raiseAll()
        #expect(try generation(of: key).hasWriters)
        writing.end()
        let after = GenerationWord(rawValue: try generation(of: key).word)
        #expect(after == GenerationWord(version: GenerationWord(rawValue: held.word).version + 2))
        let another = Digest(ofKey: "another")
        #expect(try generation(of: another).word >> 16 == held.word >> 16 + 1)
    }

    @Test func `no value may be held by readers or writers during a write`() throws {
        try fixture.put("one", "key")
        let held = try #require(try hit().entry.generation)
        let writing = try other.control.beginChange(of: key)
        #expect(!isCurrent(held))
        #expect(try hit().entry.generation == nil)
        let bytes: [UInt8] = Array("two".utf8)
        #expect(try fixture.store.put(bytes.span, for: key, fixture.record("two")) == nil)
        let generation = writing.end()
        #expect(generation == nil, "another wrote in between")
        #expect(try hit().entry.generation != nil)
    }

    @Test func `a put gets no generation if another writer ends during it`() throws {
        let first = try other.control.beginChange(of: key)
        let second = try fixture.store.control.beginChange(of: key)
        let generations = (second.end(), first.end())
        #expect(generations.0 == nil && generations.1 == nil)
        let alone = try other.control.beginChange(of: key)
        let own = alone.end()
        #expect(own != nil)
    }

    @Test func `a put that fails raises the version and leaves no writer behind`() throws {
        try fixture.put("one", "key")
        let held = try #require(try hit().entry.generation)
        let shard = fixture.path + "/entries/" + StoreLayout.shard(of: key).description
        try FileManager.default.moveItem(atPath: shard, toPath: shard + "-away")
        makeFile(shard)
        #expect(throws: CacheError.self) { try putByOther("two") }
        #expect(!isCurrent(held))
        #expect(try !generation(of: key).hasWriters)
        try FileManager.default.removeItem(atPath: shard)
        try FileManager.default.moveItem(atPath: shard + "-away", toPath: shard)
        #expect(try hit().entry.generation != nil)
    }

    @Test func `a value read during a put of another store is not current`() throws {
        try fixture.put("old", "key")
        let old = try fixture.store.find(key, .now, false) { (content) throws(CacheError) -> Lookup<Int> in
            try other.put(Array("new".utf8).span, for: key, fixture.record("new"))
            return .found(content.length)
        }
        let generation = try #require(old?.entry.generation)
        #expect(!isCurrent(generation))
        #expect(try fixture.get("key") == "new")
    }

    // MARK: Dead writers

    @Test func `a dead writer prevents held values until a sweep clears it and raises the version`()
        throws
    {
        try fixture.put("one", "key")
        let held = try #require(try hit().entry.generation)
        let before = GenerationWord(rawValue: held.word)
        // As a process does that is killed while it writes.
        let words = try #require(fixture.store.control.writableWords)
        words.add(GenerationWord.begin, at: ControlLayout.generations + Generation.index(of: key))
        #expect(try hit().entry.generation == nil)
        try fixture.sweep { $0.isDryRun = true }
        #expect(try hit().entry.generation == nil)
        try fixture.sweep()
        let after = GenerationWord(rawValue: try #require(try hit().entry.generation).word)
        #expect(after.version > before.version)
        #expect(!isCurrent(held))
    }

    @Test func `a sweep waits for a live writer and does not clear it`() throws {
        let store = fixture.store
        let other = other
        let key = key
        let lock = try other.entries.stripes.lock(.shared, stripe: key.stripe)
        let writing = try other.control.beginChange(of: key)
        let wait = expectBlocks { _ = try? Sweep.run(SweepRequest(), on: store, now: .now) }
        // The sweep's patience is a second; less than that has passed.
        #expect(store.generation(of: key)?.hasWriters == true)
        writing.end()
        _ = wait
        lock.release()
    }

    // MARK: How long values may be held

    @Test func `a plain value may be held until it expires, or forever`() throws {
        try fixture.put("one", "key")
        #expect(try hit().heldUntil == nil)
        let expires = (Timestamp.now + .seconds(100)).wholeMilliseconds
        try fixture.put("one", "key", expires: expires)
        #expect(try hit().heldUntil == expires)
    }

    @Test func `a sliding value may be held until its next access must be recorded`() throws {
        let store = try StoreFixture.open(fixture.path, .attribute, .seconds(1000))
        let start = Timestamp.now.wholeMilliseconds
        var record = fixture.record("v", created: start)
        record.idleLifetime = .seconds(160)
        record.expires = start + .seconds(160)
        try store.put(Array("v".utf8).span, for: key, record)
        let first = start + .seconds(100)
        func heldUntil(_ now: Timestamp) throws -> Timestamp? {
            try store.get(key, now: now, allowingStale: false)?.heldUntil
        }
        #expect(try heldUntil(first) == first + .seconds(10))
        #expect(try store.directory.status(of: key, .entries)?.accessed == first)
        // The recorded access still suffices, and the value may be held for another ten seconds.
        let second = first + .seconds(9)
        #expect(try heldUntil(second) == second + .seconds(10))
        #expect(try store.directory.status(of: key, .entries)?.accessed == first)
    }

    @Test func `a sliding value without recorded accesses is held until its first expiration`() throws {
        let start = Timestamp.now.wholeMilliseconds
        var record = fixture.record("v", created: start)
        record.idleLifetime = .seconds(160)
        record.expires = start + .seconds(160)
        record.staleFor = .seconds(840)
        try fixture.store.put(Array("v".utf8).span, for: key, record)
        let late = start + .seconds(170)
        let stale = try hit(now: late, stale: true)
        #expect(stale.entry.isStale)
        let until = try #require(stale.heldUntil)
        #expect(until <= late)
    }
}
