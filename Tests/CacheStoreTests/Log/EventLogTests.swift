// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct EventLogTests {
    private let fixture: StoreFixture

    init() throws {
        fixture = try StoreFixture()
    }

    private func startLog(limit: Int64 = 1 << 20) throws {
        try fixture.store.configure { (configuration) throws(CacheError) in
            configuration.limits.eventLogSize = ByteCount(limit)
        }
    }

    private var events: [LoggedRemoval] {
        get throws {
            var events: [LoggedRemoval] = []
            _ = try EventLog.forEach(in: fixture.store.directory) { events.append($0) }
            return events
        }
    }

    private func size(_ name: String) -> Int {
        (try? Data(contentsOf: URL(fileURLWithPath: fixture.path + "/" + name)).count) ?? 0
    }

    private func append(_ bytes: String) throws {
        let file = try FileDescriptor(opening: fixture.path + "/events", [.writeOnly, .append, .create])
        try file.writeAll(Array(bytes.utf8).span)
    }

    private func isLogged() throws -> Bool {
        try EventLog.forEach(in: fixture.store.directory) { _ in }
    }

    // MARK: Contents

    @Test func `without a log limit no events are written`() throws {
        try fixture.put("value", "key")
        _ = try fixture.store.remove(Digest(ofKey: "key"))
        #expect(try !isLogged())
        #expect(!fixture.directory.files(below: "cache").contains("events"))
    }

    @Test func `each way to remove a key is logged with its cause`() throws {
        try startLog()
        let began = Timestamp.now
        for key in ["removed", "observed", "old", "damaged"] { try fixture.put("v " + key, key) }
        try fixture.put("v expired", "expired", expires: Timestamp(nanoseconds: 1))
        let store = fixture.store
        #expect(try store.remove(Digest(ofKey: "removed"), name: "removed"))
        #expect(try !store.remove(Digest(ofKey: "removed"), name: "removed"), "it was gone")
        let observed = try store.entries.read(Digest(ofKey: "observed"))
        #expect(try store.remove(Digest(ofKey: "observed"), ifStill: observed))
        try fixture.damage(fixture.objectPath("v damaged"), Array("w damaged".utf8))
        #expect(try fixture.get("damaged") == nil)
        try fixture.sweep { $0.limits.maximumEntries = 0 }

        let found = try events
        let causes: [(String, LoggedRemoval.Cause)] = [
            ("removed", .removed), ("observed", .removed), ("damaged", .repaired),
            ("expired", .collected(.expired)), ("old", .collected(.entries)),
        ]
        #expect(found.map(\.cause) == causes.map(\.1))
        #expect(found.map(\.keyDigest) == causes.map { Digest(ofKey: $0.0) })
        #expect(found.map(\.key) == ["removed", "observed", "damaged", nil, nil])
        #expect(found.allSatisfy { $0.process == CurrentProcess.identifier })
        #expect(found.allSatisfy { $0.moment >= began && $0.moment <= .now })
    }

    @Test func `a dry run logs nothing`() throws {
        try startLog()
        try fixture.put("value", "key")
        try fixture.sweep {
            $0.limits.maximumEntries = 0
            $0.isDryRun = true
        }
        #expect(try !isLogged())
    }

    @Test(arguments: ["two\nlines", "back\\slash", "\u{7f}\0\t", " spaces ", "ünï 🙂", "\\x0a", "a b c d e"])
    func `any key is logged on one line`(key: String) throws {
        try startLog()
        fixture.store.log(.removed, of: Digest(ofKey: key), name: key)
        fixture.store.log(.cleared, of: Digest(ofKey: "next"), name: "next")
        #expect(try events.map(\.key) == [key, "next"])
        let text = try String(contentsOfFile: fixture.path + "/events", encoding: .utf8)
        #expect(text.split(separator: "\n").count == 2)
    }

    @Test func `a key too long for a record is logged by its digest`() throws {
        try startLog()
        let key = String(repeating: "k", count: Record.longestKey + 1)
        fixture.store.log(.removed, of: Digest(ofKey: key), name: key)
        #expect(try events.map(\.keyDigest) == [Digest(ofKey: key)] && events.allSatisfy { $0.key == nil })
    }

    // MARK: Damage

    @Test func `a partial line of any length is skipped and damages no other line`() throws {
        try startLog()
        let (key, log) = (Digest(ofKey: "torn key"), try #require(fixture.store.eventLog))
        var whole: [UInt8] = []
        let event = LoggedRemoval(
            time: .now,
            process: 1,
            cause: .removed,
            key: LoggedKey(digest: key, name: "torn key")
        )
        event.append(to: &whole)
        for length in 1..<whole.count {
            try append("\n" + String(decoding: whole[..<length], as: UTF8.self))
        }
        log.append([LoggedKey(digest: Digest(ofKey: "next"), name: "next")], cause: .removed)
        let found = try events
        #expect(found.last?.key == "next")
        // Two of them can be read: the line without its newline, and the line without its name.
        #expect(found.dropLast().allSatisfy { $0.keyDigest == key })
        #expect(found.dropLast().allSatisfy { $0.key ?? "torn key" == "torn key" })
        #expect(found.count == 3)
    }

    @Test func `a link or FIFO in place of the log is left alone, and removals continue`() throws {
        try startLog()
        let outside = fixture.directory.path + "/outside"
        try Data().write(to: URL(fileURLWithPath: outside))
        try FileManager.default.createSymbolicLink(
            atPath: fixture.path + "/events",
            withDestinationPath: outside
        )
        try fixture.put("value", "key")
        #expect(try fixture.store.remove(Digest(ofKey: "key")))
        #expect(try Data(contentsOf: URL(fileURLWithPath: outside)).isEmpty)
        try FileManager.default.removeItem(atPath: fixture.path + "/events")
        mkfifo(fixture.path + "/events", 0o600)
        try fixture.put("value", "key")
        #expect(try fixture.store.remove(Digest(ofKey: "key")))
    }

    @Test(arguments: ["events", "events.1"])
    func `the error names the unreadable one of the two files`(name: String) throws {
        try startLog()
        fixture.store.log(.removed, of: Digest(ofKey: "key"), name: "key")
        let path = fixture.path + "/" + name
        _ = try? FileManager.default.removeItem(atPath: path)
        try #require(mkfifo(path, 0o600) == 0)
        let error = #expect(throws: CacheError.self) { try isLogged() }
        #expect(error?.path == path)
    }

    @Test func `a file of the maximum possible length is rotated like any full file`() async {
        // This once crashed the process.
        await #expect(processExitsWith: .success) {
            // tmpfs allows a file of this length.
            let place = try TemporaryDirectory(below: "/dev/shm")
            let store = try StoreFixture.open(place.path + "/cache")
            makeFile(place.path + "/cache/events")
            try #require(truncate(place.path + "/cache/events", .max) == 0)
            let key = LoggedKey(digest: Digest(ofKey: "key"), name: "key")
            EventLog(in: store.directory, limit: 0).append([key], cause: .removed)
            #expect(try FileStatus.of(place.path + "/cache/events.1").size == .max)
            #expect(try FileStatus.of(place.path + "/cache/events").size < 4096)
        }
    }

    // MARK: Bound

    @Test func `two files hold the newest events within the limit`() throws {
        let limit = EventLog.smallestLimit
        try startLog(limit: 1)
        let keys = (0..<3000).map { "key \($0)" }
        for key in keys {
            fixture.store.log(.removed, of: Digest(ofKey: key), name: key)
            #expect(size("events") <= limit / 2 && size("events.1") <= limit / 2)
        }
        let names = try events.compactMap(\.key)
        #expect(names == Array(keys.suffix(names.count)), "the newest, in order, none missing")
        // A line has 112 to 115 bytes; at least the older half is full.
        #expect(names.count > Int(limit) / 2 / 115)
    }

    @Test func `a large batch is written in pieces, which are rotated like others`() throws {
        try startLog(limit: 1)
        let keys = (0..<3000).map { LoggedKey(digest: Digest(ofKey: "\($0)"), name: "\($0)") }
        fixture.store.eventLog?.append(keys, cause: .cleared)
        #expect(Int64(size("events") + size("events.1")) <= EventLog.smallestLimit)
        let found = try events.map(\.key)
        #expect(found == keys.suffix(found.count).map(\.name) && found.count > 200)
    }

    @Test func `a process stopped during a rotation does not block logging within the limit`() throws {
        try startLog(limit: 1)
        let store = fixture.store
        store.log(.removed, of: Digest(ofKey: "first"), name: "first")
        let holder = try FileDescriptor(opening: fixture.path + "/events", .readWrite)
        #expect(try holder.tryLock(.exclusive))
        for number in 0..<1500 { store.log(.removed, of: Digest(ofKey: "\(number)"), name: "\(number)") }
        #expect(Int64(size("events")) <= EventLog.smallestLimit && size("events.1") == 0)
        #expect(try events.first?.key == "first")
        // Closing it would not do: a child process that another test starts meanwhile briefly inherits it.
        holder.unlock()
        store.log(.removed, of: Digest(ofKey: "last"), name: "last")
        #expect(size("events.1") > 0)
        #expect(try events.last?.key == "last")
    }

    @Test func `a full file that was already rotated is not rotated again`() throws {
        try startLog(limit: 1)
        let store = fixture.store
        store.log(.removed, of: Digest(ofKey: "full"), name: "full")
        let file = try FileDescriptor(opening: fixture.path + "/events", .readWrite)
        let status = try file.status()
        try FileManager.default.moveItem(atPath: fixture.path + "/events", toPath: fixture.path + "/events.1")
        try store.eventLog?.rotate(file, status.identity)
        store.log(.removed, of: Digest(ofKey: "new"), name: "new")
        try store.eventLog?.rotate(file, status.identity)
        #expect(try events.map(\.key) == ["full", "new"])
    }

    @Test func `concurrent threads lose no line when they log and rotate`() async throws {
        try startLog(limit: 1)
        let store = fixture.store
        // Each thread writes less than a file holds, so nothing may be rotated away twice.
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    let store = store
                    for number in 0..<120 {
                        let key = "\(thread)-\(number)"
                        store.log(.removed, of: Digest(ofKey: key), name: key)
                    }
                }
            }
        }
        let names = try Set(events.compactMap(\.key))
        #expect(names.count == 480, "480 lines of 110 bytes fit two files of 32 KiB")
    }

    @Test
    func `concurrent processes lose no line when they log and rotate`() async throws {
        try startLog(limit: 1)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<3 {
                group.addTask { [path = fixture.path] in
                    await #expect(processExitsWith: .success) {
                        [path = path as String, number = number as Int] in
                        let store = try StoreFixture.open(path)
                        let log = EventLog(in: store.directory, limit: 1)
                        for event in 0..<160 {
                            let key = "\(number)-\(event)"
                            log.append([LoggedKey(digest: Digest(ofKey: key), name: key)], cause: .removed)
                        }
                    }
                }
            }
        }
        let found = try events
        #expect(Set(found.map(\.process)).count == 3)
        // All 480 fit the two files, so each process's lines are present, in its order.
        for process in Set(found.map(\.process)) {
            let numbers = found.filter { $0.process == process }.compactMap { event in
                event.key?.split(separator: "-").last.flatMap { Int($0) }
            }
            #expect(numbers == Array(0..<160))
        }
    }
}
