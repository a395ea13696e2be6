// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Control files that contain only the path of the words, which are in `/dev/shm`.
@Suite(.takesTurns) struct ControlPointerTests {
    private static let inMemory = Capabilities(
        attributes: .writable,
        unnamedFiles: true,
        sharedMapping: .memory
    )
    private let key = Digest(ofKey: "key")

    private func open(_ path: String) throws -> Store {
        try StoreFixture.open(path, .attribute, .zero, Self.inMemory)
    }

    private func put(_ store: Store, _ value: String) throws -> Generation? {
        let bytes = Array(value.utf8)
        return try store.put(bytes.span, for: key, Record(content: Content(of: bytes.span), created: .now))
    }

    private func generation(_ store: Store) throws -> Generation? {
        try store.get(key, now: .now, allowingStale: false)?.entry.generation
    }

    /// Returns the path of the words.
    private func words(_ path: String) throws -> String {
        let text = try String(contentsOfFile: path + "/control", encoding: .utf8)
        #expect(text.hasPrefix("/dev/shm/diskcache-") && text.hasSuffix("\n"))
        return String(text.dropLast())
    }

    /// Waits until no process uses the words: child processes that other tests start briefly inherit the descriptor.
    private func awaitUnused(_ words: String) throws {
        let file = try FileDescriptor(opening: words, .readWrite)
        #expect(try file.tryLock(.exclusive, until: .now + .seconds(60)))
        // Explicitly, because such a process may have inherited this descriptor, too.
        file.unlock()
    }

    private func remove(_ path: String) throws { try FileManager.default.removeItem(atPath: path) }

    @Test func `a small control file names the words, which all processes share`() throws {
        let fixture = try StoreFixture(assuming: Self.inMemory)
        let words = try words(fixture.path)
        let status = try FileStatus.ofLink(words)
        #expect(status.permissions == 0o600 && status.allocatedSize >= ControlLayout.byteCount)
        #expect(fixture.store.control.condition == .sharedInMemory)
        #expect(fixture.store.control.usage == StoreUsage(bytes: 0, entries: 0, isCounted: true))
        let other = try open(fixture.path)
        let held = try #require(try put(fixture.store, "one"))
        #expect(try generation(other) != nil)
        _ = try put(other, "two")
        #expect(fixture.store.isCurrent(held) == false)
        #expect(try fixture.store.control.isCurrent() && other.control.isCurrent())
        // The words are not in the directory, so its overhead does not include them.
        #expect(try fixture.sweep().unrecognised.isEmpty)
        #expect(fixture.store.overhead < ControlLayout.byteCount + 544 * 4096)
        try remove(words)
    }

    @Test func `counts outlive the processes, and unused words can be locked`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/cache"
        try {
            let store = try open(path)
            _ = try put(store, "one")
            // The descriptor is closed: the mapping alone keeps the lock.
            #expect(try !FileDescriptor(opening: words(path), .readWrite).tryLock(.exclusive))
        }()
        try awaitUnused(words(path))
        let store = try open(path)
        #expect(store.cumulative?[.put] == 1 && store.control.usage?.entries == 1)
        try remove(words(path))
    }

    @Test func `a copy of the directory gets its own words, and the original keeps its words`() throws {
        let fixture = try StoreFixture(assuming: Self.inMemory)
        let held = try #require(try put(fixture.store, "one"))
        let copy = fixture.directory.path + "/copy"
        try FileManager.default.copyItem(atPath: fixture.path, toPath: copy)
        let original = try words(fixture.path)
        let store = try open(copy)
        #expect(try words(copy) != original)
        #expect(store.counters[.controlFailure] == 0)
        _ = try put(store, "two")
        #expect(fixture.store.isCurrent(held) == true)
        #expect(try fixture.store.control.isCurrent())
        try remove(original)
        try remove(words(copy))
    }

    @Test
    func `unlinked words block writers that cannot see them until their users replace them`()
        throws
    {
        let fixture = try StoreFixture(assuming: Self.inMemory)
        let held = try #require(try put(fixture.store, "one"))
        let second = try open(fixture.path)
        try remove(words(fixture.path))
        // As in a container with another /dev/shm.
        let newcomer = try open(fixture.path)
        #expect(newcomer.control.condition == .unreachable)
        #expect(newcomer.counters[.controlFailure] == 1)
        #expect(try newcomer.get(key, now: .now, allowingStale: false)?.value == Data("one".utf8))
        let refused = #expect(throws: CacheError.self) { try put(newcomer, "two") }
        #expect(refused?.code == .busy && refused?.message.contains("/dev/shm") == true)
        #expect(throws: CacheError.self) { try newcomer.remove(key) }
        #expect(fixture.store.isCurrent(held) == true)

        #expect(try !fixture.store.control.isCurrent())
        fixture.store.followControl()
        #expect(fixture.store.isCurrent(held) == false)
        let seen = try #require(try generation(fixture.store))
        _ = try put(newcomer, "two")
        #expect(fixture.store.isCurrent(seen) == false)
        let again = try #require(try generation(fixture.store))
        // A store that still has the old words detects that they are superseded.
        _ = try put(second, "three")
        #expect(fixture.store.isCurrent(again) == false)
        #expect(fixture.store.counters[.controlFailure] == 0)
        try remove(words(fixture.path))
    }

    @Test(arguments: ["gone", "cut", "another's", "another owner's", "not named", "long", "empty"])
    func `unusable words or pointers that are not in use are recreated`(damage: String) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/cache"
        try { _ = try put(open(path), "one") }()
        let old = try words(path)
        try awaitUnused(old)
        switch damage {
        case "gone": try remove(old)
        case "cut": #expect(truncate(old, 4096) == 0)
        case "another's":
            let handle = try #require(FileHandle(forWritingAtPath: old))
            try handle.seek(toOffset: UInt64(ControlWord.pointerSeal.rawValue * 8))
            // The lowest byte of a seal is odd.
            try handle.write(contentsOf: Data([0]))
            try handle.close()
        case "another owner's":
            guard geteuid() == 0 else { return }
            #expect(chown(old, 12345, 12345) == 0)
        case "not named":
            try Data("/dev/shm/../../etc/passwd\n".utf8).write(to: URL(fileURLWithPath: path + "/control"))
        case "long":
            let handle = try #require(FileHandle(forWritingAtPath: path + "/control"))
            try handle.seekToEnd()
            try handle.write(contentsOf: Data("x".utf8))
            try handle.close()
        default: #expect(truncate(path + "/control", 0) == 0)
        }
        let store = try open(path)
        #expect(store.counters[.controlFailure] == 0)
        #expect(store.control.condition == .sharedInMemory)
        #expect(store.control.usage?.isCounted == false)
        #expect(try words(path) != old)
        #expect(try put(store, "two") != nil)
        try remove(words(path))
        bestEffort { () throws(Errno) in
            try SharedMemory.open().unlink(RelativePath(String(old.dropFirst(9))))
        }
    }

    /// Each one deletes orphans first, and an orphan looks like words that another one has just created.
    @Test func `caches that create their words at the same time all have some`() throws {
        onThreads(8) { _ in
            do {
                for _ in 0..<40 {
                    let fixture = try StoreFixture(assuming: Self.inMemory)
                    #expect(fixture.store.counters[.controlFailure] == 0)
                    #expect(fixture.store.control.condition == .sharedInMemory)
                    try remove(words(fixture.path))
                }
            } catch {
                Issue.record(error)
            }
        }
    }

    @Test func `a mapped control file is retired when the words move to shared memory`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/cache"
        let early = try StoreFixture.open(path)
        let held = try #require(try put(early, "one"))
        let late = try open(path)
        #expect(late.control.condition == .sharedInMemory)
        #expect(early.isCurrent(held) == false)
        #expect(early.control.file?.state == .superseded)
        try remove(words(path))
    }

    /// As made by `cp -al` for a backup.
    @Test(arguments: [SharedMapping.file, .memory])
    func `a copy made of hard links shares no control file with the original`(mapping: SharedMapping) throws {
        let directory = try TemporaryDirectory()
        let (path, copy) = (directory.path + "/cache", directory.path + "/copy")
        let capabilities = Capabilities(attributes: .writable, unnamedFiles: true, sharedMapping: mapping)
        func open(_ path: String) throws -> Store {
            try StoreFixture.open(path, .attribute, .zero, capabilities)
        }
        let early = try open(path)
        _ = try put(early, "one")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/cp")
        process.arguments = ["-al", path, copy]
        try process.run()
        process.waitUntilExit()
        let other = try open(copy)
        _ = try Sweep.runIfDue(SweepRequest(), on: other, now: .now) { _ in true }
        #expect(other.enact(.remove, .tagged("nothing"), now: .now))
        early.followControl()
        for store in [early, try open(path), other] {
            #expect(try store.get(key, now: .now, allowingStale: false) != nil)
            #expect(try store.control.isCurrent())
        }
        #expect(early.control.rulesVersion == 0 && other.control.rulesVersion != 0)
        if mapping == .memory { try [path, copy].forEach { try remove(words($0)) } }
    }

    /// Each replacement would leak 3 MiB and a descriptor: systemd removes a user's files in `/dev/shm` at each logout.
    @Test(arguments: [SharedMapping.file, .memory])
    func `a replaced control file is unmapped and closed`(mapping: SharedMapping) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/cache"
        let capabilities = Capabilities(attributes: .writable, unnamedFiles: true, sharedMapping: mapping)
        let store = try StoreFixture.open(path, .attribute, .zero, capabilities)
        let first = try #require(store.control.words)
        // The files whose mappings are counted.
        var names = [mapping == .file ? path + "/control" : try words(path)]
        func held() throws -> [Int] {
            // Foundation would read only the first 4 KiB, as the file's size is 0 and each read returns at most a page.
            let list = try FileDescriptor(opening: "/proc/self/maps", .readOnly).readToEnd()
            let maps = String(decoding: list, as: UTF8.self).split(separator: "\n")
            let links = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
            }
            return [
                maps.count { line in names.contains { line.contains($0) } },
                links.count { $0.hasPrefix(path + "/control") },
            ]
        }
        for _ in 0..<5 {
            if mapping == .memory { try remove(words(path)) }
            try remove(path + "/control")
            store.followControl()
            #expect(store.control.file?.state == .ready)
            if mapping == .memory { names.append(try words(path)) }
        }
        // The kernel lists mappings in pieces and may omit one that a thread of another test changes meanwhile.
        let present = mapping == .file ? [1, 0] : [1, 1]
        #expect(try (0..<100).contains { _ in try held() == present })
        #expect(first.areSuperseded && first.load(.rulesVersion) == 0)
        // Code that still accesses the old words does no harm.
        first.store(7, at: .usedBytes)
        #expect(first.load(.usedBytes) == 7 && store.control.words?.load(.usedBytes) != 7)
        if mapping == .memory { try remove(words(path)) }
    }

    @Test func `a store that gives up its control file ends it for all, and none is recreated`() throws {
        let fixture = try StoreFixture(assuming: Self.inMemory)
        let words = try words(fixture.path)
        let other = try open(fixture.path)
        let held = try #require(try put(other, "one"))
        try fixture.store.configure { $0.limits.sharesMemory = false }
        #expect(fixture.store.control.words == nil && fixture.store.control.isImpossible)
        #expect(other.isCurrent(held) == false)
        #expect(!FileManager.default.fileExists(atPath: words))
        other.followConfiguration()
        other.followControl()
        fixture.store.followControl()
        #expect(other.control.isImpossible && fixture.store.control.condition == .impossible)
        #expect(try put(other, "two") == nil)
        #expect(try fixture.store.get(key, now: .now, allowingStale: false) != nil)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
    func `words that root creates for another user's cache belong to that user`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/cache"
        try #require(mkdir(path, 0o700) == 0 && chown(path, 65534, 65533) == 0)
        _ = try put(try open(path), "value")
        let words = try words(path)
        for file in [words, path + "/control"] {
            let status = try FileStatus.ofLink(file)
            #expect(status.owner == 65534 && status.group == 65533, "\(file)")
        }
        try remove(words)
    }

    /// As with a private `/dev/shm`: the store without shared memory could neither see the words nor supersede them.
    @Test func `a control file from before shared memory was disabled is not reused`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/cache"
        _ = try put(try open(path), "old")
        let words = try words(path)
        try Data(#"{"shareMemory": false}"#.utf8).write(to: URL(fileURLWithPath: path + "/config.json"))
        let blind = Capabilities(attributes: .writable, unnamedFiles: true, sharedMapping: .none)
        let other = try StoreFixture.open(path, .attribute, .zero, blind)
        let (bytes, later) = (Array("new".utf8), Digest(ofKey: "later"))
        _ = try other.put(bytes.span, for: later, Record(content: Content(of: bytes.span), created: .now))
        try other.configure { $0.limits.sharesMemory = nil }
        let store = try open(path)
        #expect(try store.get(later, now: .now, allowingStale: false)?.value == Data("new".utf8))
        #expect(try store.get(key, now: .now, allowingStale: false)?.value == Data("old".utf8))
        for path in try Set([words, self.words(path)]) where FileManager.default.fileExists(atPath: path) {
            try remove(path)
        }
    }

    @Test func `words contain the path of their directory before their blocks are allocated`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/cache"
        let seen = FailureCount()
        @Sendable func look() throws {
            for name in try FileManager.default.contentsOfDirectory(atPath: "/dev/shm")
            where name.hasPrefix("diskcache-") {
                // Words of other tests may be deleted meanwhile.
                let bytes = FileManager.default.contents(atPath: "/dev/shm/" + name) ?? Data()
                if bytes.range(of: Data(path.utf8)) != nil { seen.add(name) }
            }
        }
        try SystemCall.withFaults({
            if $0 == .allocate { #expect(throws: Never.self) { try look() } }
            return nil
        }) { _ = try open(path) }
        #expect(try seen.all.count == 1 && words(path).hasSuffix(seen.all[0]))
        try remove(words(path))
    }

    @Test func `creating words deletes those of deleted directories, and no others`() throws {
        let directory = try TemporaryDirectory()
        let (gone, idle, used) = (
            directory.path + "/gone", directory.path + "/idle", directory.path + "/used"
        )
        try { _ = (try open(gone), try open(idle)) }()
        let user = try open(used)
        let (goneWords, idleWords, usedWords) = (try words(gone), try words(idle), try words(used))
        try awaitUnused(goneWords)
        try awaitUnused(idleWords)
        try remove(gone)
        // The directory is not found at its path, but is still in use.
        try FileManager.default.moveItem(atPath: used, toPath: used + "-moved")
        // As left by a process that is killed while it creates words.
        let empty = "/dev/shm/diskcache-" + String(repeating: "0", count: 31) + "e"
        makeFile(empty)
        let store = try open(directory.path + "/another")
        #expect(!FileManager.default.fileExists(atPath: empty))
        #expect(!FileManager.default.fileExists(atPath: goneWords))
        #expect(FileManager.default.fileExists(atPath: idleWords))
        #expect(FileManager.default.fileExists(atPath: usedWords))
        withExtendedLifetime((user, store)) {}
        for path in [idleWords, usedWords, try words(directory.path + "/another")] { try remove(path) }
    }
}
