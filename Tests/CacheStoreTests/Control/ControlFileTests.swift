// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct ControlFileTests {
    let key = Digest(ofKey: "key")

    private func inode(_ fixture: StoreFixture) throws -> UInt64 {
        try fixture.store.directory.root.status(of: StoreLayout.control).identity.inode
    }

    private func put(_ store: Store, _ value: String) throws -> Generation? {
        let bytes = Array(value.utf8)
        return try store.put(
            bytes.span,
            for: key,
            Record(content: Content(of: bytes.span), created: .now)
        )
    }

    private func isHeld(_ store: Store) throws -> Bool {
        try store.get(key, now: .now, allowingStale: false)?.entry.generation != nil
    }

    /// Overwrites a word in the file, which the library never does.
    private func overwrite(_ path: String, word: Int, _ value: UInt64) throws {
        let handle = try #require(FileHandle(forWritingAtPath: path + "/control"))
        try handle.seek(toOffset: UInt64(word * 8))
        try handle.write(contentsOf: withUnsafeBytes(of: value.littleEndian) { Data($0) })
        try handle.close()
    }

    @Test func `a new cache has a control file that is fully allocated and ready`() throws {
        let fixture = try StoreFixture()
        let status = try fixture.store.directory.root.status(of: StoreLayout.control)
        #expect(status.size == ControlLayout.byteCount)
        #expect(status.allocatedSize >= ControlLayout.byteCount)
        #expect(status.permissions == 0o600)
        #expect(fixture.store.control.file?.state == .ready)
        #expect(fixture.store.control.usage == StoreUsage(bytes: 0, entries: 0, isCounted: true))
        #expect(fixture.temporaries.isEmpty)
        let milliseconds = UInt64(Timestamp.now.nanoseconds / 1_000_000)
        let generation = try #require(fixture.store.generation(of: key))
        #expect(milliseconds - GenerationWord(rawValue: generation.word).version < 600_000)
        #expect(try fixture.store.control.isCurrent())
    }

    @Test func `the parts of the layout do not overlap and start on separate cache lines`() {
        #expect(ControlLayout.wanted + 2 * StoreLayout.stripeCount <= ControlLayout.counters)
        #expect(ControlLayout.counters % 8 == 0 && ControlLayout.counterSlots % 8 == 0)
        #expect(ControlLayout.byteCount % 4096 == 0)
    }

    static let damages: [(String, @Sendable (String) throws -> Void)] = [
        ("missing", { try FileManager.default.removeItem(atPath: $0) }),
        ("empty", { makeFile($0) }),
        ("short", { #expect(truncate($0, off_t(ControlLayout.byteCount - 1)) == 0) }),
        ("long", { #expect(truncate($0, off_t(ControlLayout.byteCount + 1)) == 0) }),
        ("zeros", { try Data(count: ControlLayout.byteCount).write(to: URL(fileURLWithPath: $0)) }),
        (
            "garbage",
            { try noise(count: ControlLayout.byteCount, seed: 1).write(to: URL(fileURLWithPath: $0)) }
        ),
        (
            "a link",
            {
                try FileManager.default.moveItem(atPath: $0, toPath: $0 + "-away")
                #expect(symlink($0 + "-away", $0) == 0)
            }
        ),
        (
            "a pipe",
            {
                try FileManager.default.removeItem(atPath: $0)
                #expect(mkfifo($0, 0o600) == 0)
            }
        ),
    ]

    @Test(arguments: Self.damages.map(\.0))
    func `a damaged control file is recreated at another inode, and values stay`(damage: String) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/cache"
        let old = try {
            let store = try StoreFixture.open(path)
            _ = try put(store, "value")
            return try store.directory.root.status(of: StoreLayout.control).identity.inode
        }()
        // Keeps the inode number from being reused.
        let keeper = try FileDescriptor(opening: path + "/control", .readOnly)
        try #require(Self.damages.first { $0.0 == damage }).1(path + "/control")
        let store = try StoreFixture.open(path)
        let status = try store.directory.root.status(of: StoreLayout.control)
        #expect(status.kind == .regular && status.size == ControlLayout.byteCount)
        #expect(status.identity.inode != old)
        #expect(store.control.file?.state == .ready)
        #expect(store.control.usage?.isCounted == false)
        #expect(store.counters[.controlFailure] == 0)
        #expect(try isHeld(store))
        #expect(directory.files(below: "cache/tmp").isEmpty)
        keeper.close()
    }

    @Test(arguments: [
        (ControlWord.magic, 1), (.version, 99), (.size, 8), (.state, 77),
    ])
    func `a control file with a foreign header is recreated`(word: ControlWord, value: Int) throws {
        let fixture = try StoreFixture()
        let old = try inode(fixture)
        let held = try #require(try put(fixture.store, "old"))
        try overwrite(fixture.path, word: word.rawValue, UInt64(value))
        let store = try StoreFixture.open(fixture.path)
        #expect(try inode(fixture) != old)
        #expect(try put(store, "value") != nil)
        // A store that has the old file mapped must not continue to use it.
        #expect(fixture.store.isCurrent(held) == false)
        let seen = try #require(try store.get(key, now: .now, allowingStale: false)?.entry.generation)
        _ = try put(fixture.store, "new")
        #expect(store.isCurrent(seen) == false)
    }

    @Test func `a sparse control file gets its blocks allocated`() throws {
        let fixture = try StoreFixture()
        let copy = fixture.directory.path + "/copy"
        #expect(FileManager.default.createFile(atPath: copy, contents: nil))
        #expect(truncate(copy, off_t(ControlLayout.byteCount)) == 0)
        let handle = try #require(FileHandle(forWritingAtPath: copy))
        let header = try #require(FileHandle(forReadingAtPath: fixture.path + "/control"))
        try handle.write(contentsOf: #require(try header.read(upToCount: 64)))
        try handle.close()
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        try FileManager.default.moveItem(atPath: copy, toPath: fixture.path + "/control")
        let store = try StoreFixture.open(fixture.path)
        let status = try store.directory.root.status(of: StoreLayout.control)
        #expect(status.allocatedSize >= ControlLayout.byteCount)
        #expect(try put(store, "value") != nil)
    }

    // MARK: Replacing

    @Test func `a store with a superseded control file holds nothing, and others see its next put`() throws {
        let fixture = try StoreFixture()
        let early = fixture.store
        let held = try #require(try put(early, "one"))
        // As left by a process that is killed before it has put the new file in place.
        try #require(early.control.file).supersede()
        #expect(early.isCurrent(held) == false)
        #expect(try !isHeld(early))
        #expect(try !early.control.isCurrent())
        #expect(try put(early, "two") == nil)
        let late = try StoreFixture.open(fixture.path)
        #expect(late.control.file?.identity != early.control.file?.identity)
        let seen = try #require(try late.get(key, now: .now, allowingStale: false)?.entry.generation)
        _ = try put(early, "three")
        #expect(late.isCurrent(seen) == false)
        #expect(late.control.file?.identity == early.control.file?.identity)
        #expect(try isHeld(early))
    }

    @Test func `a removed control file is detected, recreated, and superseded for its other users`() throws {
        let fixture = try StoreFixture()
        let other = try StoreFixture.open(fixture.path)
        let held = try #require(try put(fixture.store, "one"))
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        #expect(try !fixture.store.control.isCurrent())
        fixture.store.renewControl()
        #expect(try fixture.store.control.isCurrent())
        #expect(fixture.store.isCurrent(held) == false)
        // The other store still has the removed file, which is superseded.
        #expect(try !isHeld(other))
        let seen = try #require(try fixture.store.get(key, now: .now, allowingStale: false)?.entry.generation)
        _ = try put(other, "two")
        #expect(fixture.store.isCurrent(seen) == false)
    }

    @Test func `a store follows a control file that a newcomer has recreated`() throws {
        let fixture = try StoreFixture()
        let other = try StoreFixture.open(fixture.path)
        let held = try #require(try put(other, "one"))
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let newcomer = try StoreFixture.open(fixture.path)
        let seen = try #require(try put(newcomer, "two"))
        fixture.store.followControl()
        #expect(fixture.store.control.file?.identity == newcomer.control.file?.identity)
        // The store that detected the removal has superseded the removed file for its other users.
        #expect(other.isCurrent(held) == false)
        _ = try put(other, "three")
        #expect(newcomer.isCurrent(seen) == false)
        #expect(fixture.store.counters[.controlFailure] == 0)
    }

    @Test func `raising all generations reaches the file that replaced a superseded one`() throws {
        let fixture = try StoreFixture()
        try #require(fixture.store.control.file).supersede()
        let newcomer = try StoreFixture.open(fixture.path)
        let seen = try #require(try put(newcomer, "two"))
        try fixture.store.control.raiseAll()
        #expect(newcomer.isCurrent(seen) == false)
    }

    @Test func `while a control file is forming, writers raise generations and no value is held`() throws {
        let fixture = try StoreFixture()
        try #require(fixture.store.control.file).setState(.forming)
        let before = try #require(fixture.store.generation(of: key))
        #expect(before.hasWriters)
        #expect(try put(fixture.store, "one") == nil)
        #expect(fixture.store.generation(of: key)?.word != before.word)
        #expect(try !isHeld(fixture.store))
        let old = try inode(fixture)
        let other = try StoreFixture.open(fixture.path)
        #expect(try inode(fixture) == old, "its maker is dead, but it is good")
        #expect(other.control.file?.state == .ready)
        #expect(try isHeld(fixture.store))
    }

    @Test func `a control file is forming until all writers that began without it have ended`() throws {
        let fixture = try StoreFixture()
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let lock = try fixture.store.entries.stripes.lock(.shared, stripe: key.stripe)
        let other = try Store(at: fixture.path)
        #expect(other.control.file?.state == .forming)
        lock.release()
        #expect(try StoreFixture.open(fixture.path).control.file?.state == .ready)
    }

    // MARK: Without a control file

    @Test func `a writer without a control file checks for a new one`() throws {
        let fixture = try StoreFixture()
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let early = try SystemCall.withFaults({ $0 == .allocate ? .error(.noSpace) : nil }) {
            let early = try StoreFixture.open(fixture.path)
            #expect(early.counters[.controlFailure] == 1)
            #expect(!early.hasGenerations)
            #expect(try put(early, "one") == nil)
            #expect(try early.get(key, now: .now, allowingStale: false)?.value == Data("one".utf8))
            return early
        }
        let late = try StoreFixture.open(fixture.path)
        let seen = try #require(try late.get(key, now: .now, allowingStale: false)?.entry.generation)
        #expect(try put(early, "two") != nil)
        #expect(late.isCurrent(seen) == false)
        #expect(try isHeld(early))
    }

    @Test func `an unmappable control file blocks writers but not readers`() throws {
        let fixture = try StoreFixture()
        _ = try put(fixture.store, "one")
        // A running program cannot be opened for writing, not even by root.
        let control = fixture.path + "/control"
        let away = fixture.path + "-away"
        try FileManager.default.moveItem(atPath: control, toPath: away)
        try FileManager.default.copyItem(atPath: "/bin/sleep", toPath: control)
        let program = Process()
        program.executableURL = URL(fileURLWithPath: control)
        program.arguments = ["100"]
        try program.run()
        let store = try StoreFixture.open(fixture.path)
        #expect(store.counters[.controlFailure] == 1)
        #expect(try store.get(key, now: .now, allowingStale: false)?.value == Data("one".utf8))
        #expect(throws: CacheError.self) { try put(store, "two") }
        #expect(throws: CacheError.self) { try store.remove(key) }
        kill(program.processIdentifier, SIGKILL)
        program.waitUntilExit()
        try FileManager.default.removeItem(atPath: control)
        try FileManager.default.moveItem(atPath: away, toPath: control)
        #expect(try put(store, "two") != nil)
    }

    @Test(arguments: [Errno.wouldBlock, .outOfMemory])
    func `a process that cannot map the control file leaves it unchanged for the others`(error: Errno) throws
    {
        let fixture = try StoreFixture()
        let old = try inode(fixture)
        let held = try #require(try put(fixture.store, "one"))
        // EAGAIN: the mapping would exceed the limit of locked memory, mmap(2).
        let store = try SystemCall.withFaults({ $0 == .map ? .error(error) : nil }) {
            try StoreFixture.open(fixture.path)
        }
        #expect(!store.hasGenerations && store.counters[.controlFailure] == 1)
        #expect(try inode(fixture) == old && fixture.store.isCurrent(held) == true)
        #expect(try put(store, "two") != nil)
        #expect(fixture.store.isCurrent(held) == false)
    }

    @Test func `no control file is created or used if mappings are not shared`() throws {
        let remote = Capabilities(attributes: .writable, unnamedFiles: true, sharedMapping: .none)
        let fixture = try StoreFixture(assuming: remote)
        #expect(!FileManager.default.fileExists(atPath: fixture.path + "/control"))
        #expect(!fixture.store.hasGenerations)
        #expect(fixture.store.cumulative == nil && fixture.store.control.usage == nil)
        #expect(try put(fixture.store, "one") == nil)
        #expect(try fixture.get("key") == "one")
        #expect(try !isHeld(fixture.store))
        #expect(try fixture.sweep().drift == nil)
        #expect(try fixture.store.control.isCurrent())
        // An existing file of this name is left alone.
        makeFile(fixture.path + "/control", "somebody's")
        _ = try put(fixture.store, "two")
        #expect(try String(contentsOfFile: fixture.path + "/control", encoding: .utf8) == "somebody's")
    }
}

/// The control file on full or read-only file systems.
@Suite(.enabled(if: Mount.isAllowed, "mounting a file system needs root"), .takesTurns)
struct ControlFileSystemTests {
    @Test func `every word of the control file can be written on a full file system`() throws {
        let mount = try Mount("tmpfs", options: "size=8m")
        let store = try Store(at: mount.path + "/cache")
        let filler = try #require(fopen(mount.path + "/filler", "w"))
        let chunk = [UInt8](repeating: 1, count: 4096)
        while fwrite(chunk, 1, chunk.count, filler) == chunk.count, fflush(filler) == 0 {}
        fclose(filler)
        let words = try #require(store.control.writableWords)
        for index in ControlLayout.counters..<ControlLayout.wordCount { words.add(0, at: index) }
        // A store that is opened now can map it, too.
        let other = try Store(at: mount.path + "/cache")
        #expect(other.hasGenerations)
    }

    @Test func `without room for a control file the cache works, and it creates one later`() throws {
        let mount = try Mount("tmpfs", options: "size=500k")
        let store = try Store(at: mount.path + "/cache")
        #expect(!store.hasGenerations)
        #expect(store.counters[.controlFailure] == 1)
        let key = Digest(ofKey: "key")
        let bytes = Array("value".utf8)
        let record = Record(content: Content(of: bytes.span), created: .now)
        #expect(try store.put(bytes.span, for: key, record) == nil)
        #expect(try store.get(key, now: .now, allowingStale: false)?.entry.generation == nil)
        try mount.remount("size=5m")
        let other = try Store(at: mount.path + "/cache")
        #expect(other.control.file?.state == .ready)
        let seen = try #require(try other.get(key, now: .now, allowingStale: false)?.entry.generation)
        #expect(try store.put(bytes.span, for: key, record) != nil)
        #expect(other.isCurrent(seen) == false)
    }

    @Test func `on a read-only file system the control file is read and not counted in`() throws {
        let mount = try Mount("tmpfs", options: "size=5m")
        let key = Digest(ofKey: "key")
        let bytes = Array("value".utf8)
        do {
            let store = try Store(at: mount.path + "/cache")
            try store.put(
                bytes.span,
                for: key,
                Record(content: Content(of: bytes.span), created: .now)
            )
        }
        try mount.remount("ro")
        let store = try Store(at: mount.path + "/cache")
        let hit = try #require(try store.get(key, now: .now, allowingStale: false))
        let generation = try #require(hit.entry.generation)
        #expect(store.isCurrent(generation) == true)
        #expect(store.counters[.hit] == 1)
        #expect(store.cumulative?[.hit] == 0)
        #expect(store.cumulative?[.put] == 1)
        #expect(throws: CacheError.self) { try store.remove(key) }
    }
}
