// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// The Bloom filter, with which most misses need no system call.
@Suite(.takesTurns) struct BloomFilterTests {
    let fixture: StoreFixture
    let key = Digest(ofKey: "key")

    init() throws {
        fixture = try StoreFixture()
    }

    private func isAbsent(_ store: Store, _ key: Digest) -> Bool {
        store.control.filter.map { !$0.mayContain(key) } ?? false
    }

    private func controlFile(_ store: Store) throws -> ControlFile { try #require(store.control.file) }

    @Test func `in a new directory all keys are absent until a store puts them`() throws {
        let other = try StoreFixture.open(fixture.path)
        for store in [fixture.store, other] { #expect(isAbsent(store, key)) }
        #expect(try fixture.get("key") == nil)
        #expect(fixture.store.counters[.miss] == 1)
        try fixture.put("value", "key")
        for store in [fixture.store, other] { #expect(!isAbsent(store, key)) }
        #expect(isAbsent(other, Digest(ofKey: "another")))
        let isRemoved = try other.remove(Digest(ofKey: "another"))
        #expect(!isRemoved)
        #expect(isAbsent(other, Digest(ofKey: "another")), "a remove leaves no entry")
    }

    @Test func `a get of an absent key does not access the disk`() throws {
        try fixture.put("value", "key")
        #expect(try fixture.get("key") == "value")
        // Clears the filter by hand, which no writer does.
        let words = try controlFile(fixture.store).words
        for index in ControlLayout.filter..<ControlLayout.wordCount { words.store(0, at: index) }
        #expect(try fixture.get("key") == nil)
        #expect(try fixture.store.liveEntry(key, now: .now, allowingStale: false) == nil)
        #expect(try fixture.store.observe(key, now: .now).value != nil, "who will write looks")
        try fixture.sweep()
        #expect(try fixture.get("key") == "value")
    }

    @Test func `the bits of a key are set before its entry is published`() throws {
        let shard = fixture.path + "/entries/" + StoreLayout.shard(of: key).description
        makeFile(shard)
        #expect(throws: CacheError.self) { try fixture.put("value", "key") }
        #expect(!isAbsent(fixture.store, key))
    }

    @Test func `few absent keys appear to be present`() throws {
        let filter = BloomFilter(in: try controlFile(fixture.store).words)
        for number in 0..<100_000 { filter.insert(Digest(ofKey: "\(number)")) }
        for number in 0..<1000 { #expect(filter.mayContain(Digest(ofKey: "\(number)"))) }
        let mistaken = (100_000..<200_000).count { filter.mayContain(Digest(ofKey: "\($0)")) }
        #expect(mistaken < 20)
    }

    // MARK: Whether the filter is valid

    @Test func `the filter of a recreated file is valid after a full sweep`() throws {
        try fixture.put("value", "key")
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try StoreFixture.open(fixture.path)
        #expect(try controlFile(other).state == .ready)
        #expect(other.control.filter == nil)
        #expect(try other.get(key, now: .now, allowingStale: false) != nil)
        fixture.store.followControl()
        try fixture.sweep { $0.isDryRun = true }
        #expect(other.control.filter == nil)
        var pace = SweepPace()
        pace.deadline = .now
        try fixture.sweep { $0.pace = pace }
        #expect(other.control.filter == nil, "the sweep had no time")
        try fixture.sweep()
        #expect(other.control.filter != nil)
        #expect(!isAbsent(other, key))
        #expect(isAbsent(other, Digest(ofKey: "another")))
    }

    @Test
    func `old and new users share one control file after the format file is deleted`()
        throws
    {
        try FileManager.default.removeItem(atPath: fixture.path + "/format")
        let other = try StoreFixture.open(fixture.path)
        try fixture.put("value", "key")
        #expect(try other.get(key, now: .now, allowingStale: false) != nil)
        #expect(try controlFile(other).identity == controlFile(fixture.store).identity)
    }

    @Test func `a control file that is not ready has no filter, and none is completed`() throws {
        let file = try controlFile(fixture.store)
        for state in [ControlState.forming, .superseded] {
            file.setState(state)
            #expect(fixture.store.control.filter == nil)
            #expect(fixture.store.control.fileToComplete == nil)
        }
        file.setState(.ready)
        #expect(fixture.store.control.filter != nil)
        #expect(fixture.store.control.fileToComplete != nil)
    }

    @Test func `the filter of another boot or of a copy is invalid until a sweep`() throws {
        try fixture.put("value", "key")
        let words = try controlFile(fixture.store).words
        let seal = words.load(.filterSeal)
        words.store(seal ^ 2, at: .filterSeal)
        #expect(fixture.store.control.filter == nil)
        try fixture.sweep()
        #expect(words.load(.filterSeal) == seal)
        let control = fixture.path + "/control"
        try FileManager.default.copyItem(atPath: control, toPath: control + "-copy")
        _ = rename(control + "-copy", control)
        let other = try StoreFixture.open(fixture.path)
        #expect(try controlFile(other).state == .ready)
        #expect(other.control.filter == nil)
    }

    @Test(arguments: 1...4)
    func `the filter of an older copy is invalid, even with the same inode number`(
        copies: Int
    ) throws {
        let path = fixture.directory.path + "/unused"
        let control = path + "/control"
        let backup = fixture.directory.path + "/backup"
        do {
            let store = try StoreFixture.open(path)
            try FileManager.default.copyItem(atPath: control, toPath: backup)
            try store.put(Array("value".utf8).span, for: key, fixture.record("value"))
        }
        // No process has the file open, so ext4 reuses its inode number for the next file.
        for _ in 0..<copies {
            try FileManager.default.removeItem(atPath: control)
            try FileManager.default.copyItem(atPath: backup, toPath: control)
        }
        let other = try StoreFixture.open(path)
        #expect(try controlFile(other).state == .ready)
        #expect(other.control.filter == nil)
        #expect(try other.get(key, now: .now, allowingStale: false) != nil)
    }

    /// This cannot be detected, as documented: it is the limit of the filter's guarantees.
    @Test func `older contents written over the file are completed by the next sweep`() throws {
        let control = fixture.path + "/control"
        let older = try Data(contentsOf: URL(fileURLWithPath: control))
        try fixture.put("value", "key")
        let file = try #require(FileHandle(forWritingAtPath: control))
        try file.write(contentsOf: older)
        try file.close()
        let other = try StoreFixture.open(fixture.path)
        #expect(try other.get(key, now: .now, allowingStale: false) == nil)
        #expect(try other.observe(key, now: .now).value != nil, "who will write looks")
        try fixture.sweep()
        #expect(try other.get(key, now: .now, allowingStale: false) != nil)
        #expect(isAbsent(other, Digest(ofKey: "another")))
    }

    @Test func `in a copy of the directory the filter is invalid, and gets find the entries`()
        throws
    {
        try fixture.put("value", "key")
        let copy = fixture.directory.path + "/copy"
        try #require(try run("cp", "-a", fixture.path, copy) == 0)
        let other = try StoreFixture.open(copy)
        #expect(other.control.filter == nil)
        #expect(try other.get(key, now: .now, allowingStale: false) != nil)
        _ = try Sweep.run(SweepRequest(), on: other, now: .now)
        #expect(!isAbsent(other, key))
        #expect(isAbsent(other, Digest(ofKey: "another")))
    }

    private func run(_ command: String...) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    @Test func `a directory set up again around its entries has no valid filter`() throws {
        try fixture.put("value", "key")
        for name in ["format", "control"] {
            try FileManager.default.removeItem(atPath: fixture.path + "/" + name)
        }
        let other = try StoreFixture.open(fixture.path)
        #expect(try controlFile(other).state == .ready)
        #expect(other.control.filter == nil)
        #expect(try other.get(key, now: .now, allowingStale: false) != nil)
    }

    @Test func `the boot identity is parsed from the text that Linux provides`() throws {
        let parsed = BootIdentity.parse("f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n")
        #expect(parsed?.0 == 0xf81d_4fae_7dec_11d0)
        #expect(parsed?.1 == 0xa765_00a0_c91e_6bf6)
        #expect(BootIdentity.parse("f81d4fae-7dec\n") == nil)
        #expect(BootIdentity.parse("") == nil)
        #expect(BootIdentity.current != nil)
    }
}
