// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct StoreSetupTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: directory.path + "/" + name))
    }

    private func code(opening path: String) -> CacheError.Code? {
        do throws(CacheError) {
            _ = try Store(at: path)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `a new directory gets the layout, accessible only to its owner`() throws {
        let path = directory.path + "/above/cache"
        _ = try Store(at: path)
        #expect(
            directory.files(below: "above/cache").filter { !$0.hasPrefix("locks/") } == [
                "CACHEDIR.TAG", "README", "control", "format",
            ]
        )
        // All locks exist from the start, as none could be created on a full file system.
        #expect(directory.files(below: "above/cache/locks").count == 3 + 2 * 64)
        #expect(try String(contentsOfFile: path + "/format", encoding: .utf8) == "diskcache 1\n")
        let tag = try String(contentsOfFile: path + "/CACHEDIR.TAG", encoding: .utf8)
        #expect(tag.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
        for name in ["", "/objects", "/entries", "/locks", "/tmp"] {
            let mode = try FileManager.default.attributesOfItem(atPath: path + name)[.posixPermissions]
            #expect(mode as? Int == 0o700)
        }
    }

    @Test func `an existing cache is opened without changes`() throws {
        _ = try Store(at: directory.path + "/cache")
        let before = directory.files()
        _ = try Store(at: directory.path + "/cache")
        #expect(directory.files() == before)
    }

    @Test func `a directory with only the cache tag is set up, even after an interrupted set-up`()
        throws
    {
        _ = try Store(at: directory.path + "/cache")
        let tag = try String(contentsOfFile: directory.path + "/cache/CACHEDIR.TAG", encoding: .utf8)
        for (name, isLocksMade) in [("restored", false), ("begun", true)] {
            let path = directory.path + "/" + name
            try FileManager.default.createDirectory(
                atPath: path + (isLocksMade ? "/locks" : ""),
                withIntermediateDirectories: true
            )
            try write(tag, to: name + "/CACHEDIR.TAG")
            #expect(code(opening: path) == nil)
        }
    }

    /// If files cannot be moved between directories, the small files are copied to their places.
    @Test func `a set-up that was killed while it copied a file is completed`() throws {
        try FileManager.default.createDirectory(
            atPath: directory.path + "/locks",
            withIntermediateDirectories: true
        )
        try write("", to: "locks/format")
        try write("diskca", to: "\(StoreLayout.freshTemporary())")
        #expect(code(opening: directory.path) == nil)
        #expect(directory.files().contains("format"))
    }

    @Test(arguments: [.inputOutput, .outOfMemory] as [Errno])
    func `a process that cannot set attributes reads the values of others`(error: Errno)
        throws
    {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        let store = try SystemCall.withFaults({ $0 == .setAttribute ? .error(error) : nil }) {
            try StoreFixture.open(fixture.path)
        }
        let hit = try store.get(Digest(ofKey: "key"), now: .now, allowingStale: false)
        #expect(hit?.value == Data("value".utf8))
    }

    @Test func `a directory with another program's cache tag is refused`() throws {
        try write("Signature: 8a477f597d28d172789f06886806bc55\n", to: "CACHEDIR.TAG")
        #expect(code(opening: directory.path) == .notACache)
        #expect(directory.files() == ["CACHEDIR.TAG"])
    }

    @Test func `an empty directory becomes a cache`() throws {
        #expect(code(opening: directory.path) == nil)
        #expect(directory.files().contains("format"))
    }

    @Test func `a directory with anything else in it is refused and left alone`() throws {
        try write("mine", to: "thesis.tex")
        #expect(code(opening: directory.path) == .notACache)
        #expect(directory.files() == ["thesis.tex"])
    }

    @Test(arguments: ["README", "format-notes", "locks"])
    func `a directory with foreign files of similar names is refused`(name: String) throws {
        try write("mine", to: name)
        #expect(code(opening: directory.path) != nil)
        #expect(directory.files() == [name])
    }

    /// The remnants of a deletion during which another process had the cache open.
    private static let remnants = [
        ["control"], ["entries", "objects"], ["control", "entries", "objects", "tmp"], ["tmp"], ["events"],
        ["events.1", "candidates", "rules"], ["README", "CACHEDIR.TAG"], ["locks"],
    ]

    /// Returns the path of a cache that has only the named parts left, without its set-up lock.
    private func leave(_ names: [String]) throws -> String {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        #expect(fixture.store.enact(.remove, .prefix("other"), now: .now))
        let place = fixture.store.directory
        let clock = ClockCheck(time: .now, uptime: .seconds(9))
        let stamp = SweepStamp(time: .now, clock: clock, datesAttributes: true)
        CandidateList(stamp: stamp, count: 0).write([], in: place)
        let key = LoggedKey(digest: Digest(ofKey: "key"), name: "key")
        EventLog(in: place, limit: 0).append([key], cause: .removed)
        try FileManager.default.copyItem(atPath: fixture.path + "/events", toPath: fixture.path + "/events.1")
        makeFile(fixture.path + "/tmp/put-x", "x")
        makeFile(fixture.path + "/locks/flight-" + String(repeating: "0", count: 64))
        makeFile(fixture.path + "/locks/lock-" + String(repeating: "0", count: 64) + "-0")
        try FileManager.default.removeItem(atPath: fixture.path + "/locks/format")
        let path = directory.path + "/left"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        for name in names {
            try FileManager.default.moveItem(
                atPath: fixture.path + "/" + name,
                toPath: path + "/" + name
            )
        }
        return path
    }

    @Test(arguments: remnants)
    func `remnants of a cache become a cache again`(names: [String]) throws {
        let path = try leave(names)
        #expect(code(opening: path) == nil)
        #expect(directory.files(below: "left").contains("format"))
    }

    /// The process had locked the set-up before `locks` was deleted.
    @Test func `a format file that another process writes during the check belongs to the cache`() throws {
        let path = try leave(["control", "format", "README"])
        let setup = StoreSetup(path: path, assumed: nil)
        #expect(throws: Never.self) { try setup.checkOwnership(of: Directory(opening: path)) }
        makeFile(path + "/format", "mine")
        #expect(throws: CacheError.self) { try setup.checkOwnership(of: Directory(opening: path)) }
    }

    @Test(arguments: remnants)
    func `remnants with anything foreign in them are refused and left alone`(names: [String]) throws {
        for foreign in names {
            let path = try leave(names)
            var isDirectory: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: path + "/" + foreign, isDirectory: &isDirectory)
            if !isDirectory.boolValue { try FileManager.default.removeItem(atPath: path + "/" + foreign) }
            makeFile(path + "/" + foreign + (isDirectory.boolValue ? "/mine" : ""), "mine")
            let before = directory.files()
            #expect(code(opening: path) == .notACache, "\(foreign)")
            #expect(directory.files() == before)
            try FileManager.default.removeItem(atPath: path)
        }
    }

    @Test(arguments: ["control", "events", "objects", "tmp"])
    func `a link in place of a remnant is refused`(name: String) throws {
        let path = try leave([name])
        try FileManager.default.moveItem(atPath: path + "/" + name, toPath: directory.path + "/away")
        try FileManager.default.createSymbolicLink(
            atPath: path + "/" + name,
            withDestinationPath: directory.path + "/away"
        )
        #expect(code(opening: path) == .notACache)
    }

    @Test(arguments: [Errno.readOnlyFileSystem, .accessDenied, .inputOutput, .invalidArgument, .outOfMemory])
    func `a cache is created without a control file if its blocks cannot be allocated`(error: Errno) throws {
        let path = directory.path + "/cache"
        let key = Digest(ofKey: "key")
        let capabilities = Capabilities(attributes: .writable, unnamedFiles: true, sharedMapping: .memory)
        // The blocks are allocated for the words in memory.
        let store = try SystemCall.withFaults({ $0 == .allocate ? .error(error) : nil }) {
            try StoreFixture.open(path, .attribute, .zero, capabilities)
        }
        let bytes = Array("value".utf8)
        try store.put(bytes.span, for: key, Record(content: Content(of: bytes.span), created: .now))
        #expect(try store.get(key, now: .now, allowingStale: false)?.value == Data(bytes))
    }

    @Test func `the format file determines whether records are in attributes`() throws {
        func format(_ path: String) throws -> String {
            try String(contentsOfFile: path + "/format", encoding: .utf8)
        }
        let sidecars = try StoreFixture(assuming: Capabilities(attributes: .absent, unnamedFiles: true))
        #expect(try format(sidecars.path) == "diskcache 1 sidecars\n")
        let free = try StoreFixture.open(sidecars.path)
        #expect(free.entries.form == .sidecar && free.directory.capabilities.attributes == .absent)
        let chosen = try StoreFixture(.sidecar)
        #expect(try format(chosen.path) == "diskcache 1 sidecars\n")

        let attributes = try StoreFixture()
        #expect(try format(attributes.path) == "diskcache 1\n")
        try attributes.put("value", "key")
        let absent = Capabilities(attributes: .absent, unnamedFiles: true)
        // Also refused without the file, as an empty entry may have its record in an attribute.
        for isGone in [false, true] {
            if isGone { try FileManager.default.removeItem(atPath: attributes.path + "/format") }
            let error = #expect(throws: CacheError.self) {
                try StoreFixture.open(attributes.path, .attribute, .zero, absent)
            }
            #expect(error?.reason?.contains("extended attributes") == true)
            #expect(try attributes.get("key") == "value")
        }
    }

    @Test func `newer and unreadable formats are refused`() throws {
        try write("diskcache 2\n", to: "format")
        #expect(code(opening: directory.path) == .newerFormat)
        for text in ["", "diskcache", "diskcache one", "diskcache -1", "something 1", "diskcache 1 1"] {
            try write(text, to: "format")
            #expect(code(opening: directory.path) == .notACache, "\(text)")
        }
        #expect(directory.files() == ["format"])
    }

    @Test func `a damaged format file is reported, and without it the cache opens`()
        throws
    {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        let format = fixture.path + "/format"
        for make in [{ makeFile(format, "\0\0\0") }, { _ = mkfifo(format, 0o600) }] {
            try FileManager.default.removeItem(atPath: format)
            make()
            let error = #expect(throws: CacheError.self) { try Store(at: fixture.path) }
            #expect(error?.code == .notACache && error?.reason == "its file `format` is not the cache's")
        }
        try FileManager.default.removeItem(atPath: format)
        let hit = try Store(at: fixture.path).get(Digest(ofKey: "key"), now: .now, allowingStale: false)
        #expect(hit?.value == Data("value".utf8))
    }

    @Test(arguments: ["objects", "entries", "locks"])
    func `the error names the file that is in place of a subdirectory`(part: String)
        throws
    {
        let fixture = try StoreFixture()
        let path = fixture.path + "/" + part
        try FileManager.default.removeItem(atPath: path)
        try #require(mkfifo(path, 0o600) == 0)
        let error = #expect(throws: CacheError.self) { try Store(at: fixture.path) }
        #expect(error?.code == .notADirectory && error?.path == path)
        #expect(error?.reason == "something is in the place of a directory")
        try FileManager.default.removeItem(atPath: fixture.path)
        makeFile(fixture.path)
        #expect(
            #expect(throws: CacheError.self) { try Store(at: fixture.path) }?.reason
                == "it is not a directory"
        )
    }

    @Test func `a set-up that was killed after any step is completed by the next one`() throws {
        // The steps of a set-up in order. A kill may leave any prefix of them.
        let steps: [(String) throws -> Void] = [
            { try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: true) },
            {
                try FileManager.default.createDirectory(
                    atPath: $0 + "/locks",
                    withIntermediateDirectories: true
                )
            },
            { makeFile($0 + "/locks/format") },
            {
                try FileManager.default.createDirectory(
                    atPath: $0 + "/objects",
                    withIntermediateDirectories: true
                )
            },
            {
                try FileManager.default.createDirectory(
                    atPath: $0 + "/entries",
                    withIntermediateDirectories: true
                )
            },
            {
                try FileManager.default.createDirectory(
                    atPath: $0 + "/tmp",
                    withIntermediateDirectories: true
                )
            },
            { makeFile($0 + "/tmp/setup-README", "half") },
            { makeFile($0 + "/README") },
            { makeFile($0 + "/CACHEDIR.TAG") },
        ]
        for count in 0...steps.count {
            let path = directory.path + "/\(count)"
            for step in steps.prefix(count) { try step(path) }
            #expect(code(opening: path) == nil, "killed after step \(count)")
            #expect(directory.files(below: "\(count)").contains("format"))
        }
    }

    @Test(arguments: [
        ["objects"], ["entries"], ["locks"], ["tmp"], ["objects", "locks"], ["objects", "entries", "locks"],
    ])
    func `opening a cache recreates deleted parts`(parts: [String]) throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        for part in parts { try FileManager.default.removeItem(atPath: fixture.path + "/" + part) }
        let store = try Store(at: fixture.path)
        let isWhole = !parts.contains("objects") && !parts.contains("entries")
        let hit = try store.get(Digest(ofKey: "key"), now: .now, allowingStale: false)
        #expect((hit != nil) == isWhole)
        try store.put(Array("new".utf8).span, for: Digest(ofKey: "key"), fixture.record("new"))
        #expect(
            try store.get(Digest(ofKey: "key"), now: .now, allowingStale: false)?.value == Data("new".utf8)
        )
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.path + "/locks").count == 131)
        #expect(try Sweep.run(SweepRequest(), on: store, now: .now).unreadable.isEmpty)
        if parts != ["tmp"] { #expect(try !fixture.store.directory.isCurrent()) }
        #expect(try store.directory.isCurrent())
    }

    /// A process that has the new entries open may already have it mapped.
    @Test func `the control file that a deletion has left over is kept`() throws {
        let fixture = try StoreFixture()
        let control = try FileStatus.of(fixture.path + "/control").identity
        for name in ["entries", "format"] {
            try FileManager.default.removeItem(atPath: fixture.path + "/" + name)
        }
        let store = try Store(at: fixture.path)
        #expect(try FileStatus.of(fixture.path + "/control").identity == control)
        #expect(store.control.file?.identity == control)
    }

    enum Rival: CaseIterable {
        case control, entries, none
    }

    /// Only then is every entry known to its filter.
    @Test(arguments: Rival.allCases)
    func `a new control file has a valid filter only if no other process interferes`(rival: Rival) throws {
        let path = directory.path + "/cache"
        let linked = Locked(0)
        let store = try SystemCall.withFaults { call in
            guard call == .link else { return nil }
            linked.withLock { $0 += 1 }
            switch rival {
            case .control: makeFile(path + "/control", "half")
            case .entries: _ = mkdir(path + "/entries", 0o700)
            case .none: return .error(.notPermitted)
            }
            return nil
        } _: {
            try Store(at: path)
        }
        #expect(linked.withLock { $0 } > 0)
        #expect(store.control.file?.state == .ready && store.control.filter == nil)
        // Later stores use the same file.
        #expect(try Store(at: path).control.file?.identity == store.control.file?.identity)
        #expect(try Store(at: directory.path + "/other").control.filter != nil)
        #expect(directory.files(below: "cache/tmp").isEmpty)
    }

    @Test func `a control file is forming until the entries directory is created`() throws {
        let path = directory.path + "/cache"
        let states = Locked<[ControlState?]>([])
        let isLinked = Locked(false)
        #expect(throws: CacheError.self) {
            try SystemCall.withFaults { call in
                if call == .link { isLinked.withLock { $0 = true } }
                guard call == .makeDirectory, isLinked.withLock({ $0 }) else { return nil }
                let words = try? Data(contentsOf: URL(fileURLWithPath: path + "/control"))
                let place = ControlWord.state.rawValue * 8
                states.withLock { $0.append(words.flatMap { ControlState(rawValue: UInt64($0[place])) }) }
                return .error(.inputOutput)
            } _: {
                try Store(at: path)
            }
        }
        #expect(states.withLock { $0.first } == .forming)
        // As if the process were killed there. The next one completes the file with the careful procedure.
        let store = try Store(at: path)
        #expect(store.control.file?.state == .ready && store.control.filter == nil)
    }

    @Test func `another directory at the path is detected even if stat fails on the open one`() throws {
        let fixture = try StoreFixture()
        #expect(try fixture.store.directory.isCurrent())
        try FileManager.default.moveItem(atPath: fixture.path, toPath: fixture.path + "-away")
        _ = try Store(at: fixture.path)
        let count = Locked(0)
        let isCurrent = try SystemCall.withFaults { call in
            guard call == .status else { return nil }
            // All calls except the stat of the path fail.
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            return isFirst ? nil : .error(.inputOutput)
        } _: {
            try fixture.store.directory.isCurrent()
        }
        #expect(!isCurrent)
    }

    @Test func `a directory that is deleted while it is opened is opened again`() throws {
        var step = 0
        var isDeleted = true
        while isDeleted {
            step += 5
            let path = directory.path + "/deleted-\(step)"
            let calls = Locked(0)
            _ = try SystemCall.withFaults { [step] _ in
                let isDue = calls.withLock { calls in
                    calls += 1
                    return calls == step
                }
                if isDue { try? FileManager.default.removeItem(atPath: path) }
                return nil
            } _: {
                try Store(at: path)
            }
            isDeleted = calls.withLock { $0 >= step }
        }
        #expect(step > 100, "a set-up makes more calls")
    }

    @Test func `concurrent threads can set up one directory`() throws {
        let path = directory.path + "/cache"
        let failures = FailureCount()
        onThreads(8) { _ in
            do throws(CacheError) {
                _ = try Store(at: path)
            } catch {
                failures.add("\(error)")
            }
        }
        #expect(failures.all == [])
    }

    @Test func `a file in place of the directory is the error notADirectory`() throws {
        try write("x", to: "file")
        #expect(code(opening: directory.path + "/file") == .notADirectory)
        #expect(code(opening: directory.path + "/file/below") == .notADirectory)
    }

    @Test func `a symbolic link in place of a subdirectory is not followed`() throws {
        let path = directory.path + "/cache"
        _ = try Store(at: path)
        try FileManager.default.removeItem(atPath: path + "/objects")
        try FileManager.default.createDirectory(
            atPath: directory.path + "/elsewhere",
            withIntermediateDirectories: true
        )
        try FileManager.default.createSymbolicLink(
            atPath: path + "/objects",
            withDestinationPath: directory.path + "/elsewhere"
        )
        #expect(code(opening: path) == .notADirectory)
        #expect(directory.files(below: "elsewhere").isEmpty)
    }
}

/// Failures recorded by several threads.
final class FailureCount: Sendable {
    private let failures = Locked<[String]>([])

    func add(_ failure: String) {
        failures.withLock { $0.append(failure) }
    }

    var all: [String] { failures.withLock { $0 } }
}
