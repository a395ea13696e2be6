// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// The file in which writers record the changes that must be sent to other machines.
@Suite(.takesTurns) struct OutboxFileTests {
    let fixture: StoreFixture

    init() throws {
        fixture = try StoreFixture()
    }

    private var file: OutboxFile { fixture.store.outbox }

    private func record(_ number: UInt64) -> OutboxRecord {
        OutboxRecord(number: number, entry: Digest(ofKey: "key \(number)"), work: .remove)
    }

    private func records() throws -> [OutboxRecord] {
        OutboxRecord.all(in: try file.read(from: 0)?.bytes ?? []).records.filter(\.isAboutKey)
    }

    @Test func `changes are not recorded without a remote tier`() throws {
        try fixture.put("value", "key")
        _ = try fixture.store.remove(Digest(ofKey: "key"), now: .now)
        #expect(try file.mark() == nil)
    }

    @Test func `every change is recorded with its own number`() throws {
        fixture.store.noteChanges(true)
        let key = Digest(ofKey: "key")
        try fixture.put("value", "key")
        _ = try fixture.store.remove(key, now: .now)
        _ = try fixture.store.vacate(key)
        let noted = try records()
        #expect(
            noted.map(\.work) == [
                .put(content: Digest(of: Array("value".utf8).span), length: 5), .remove, .remove,
            ]
        )
        #expect(noted.allSatisfy { $0.entry == key })
        #expect(noted.map(\.number) == noted.map(\.number).sorted() && Set(noted.map(\.number)).count == 3)
    }

    @Test func `nothing is recorded if no changes are sent`() throws {
        fixture.store.noteChanges(true)
        fixture.store.noteChanges(false)
        try fixture.put("value", "key")
        #expect(try file.mark()?.size == 0)
    }

    @Test func `a full file takes only the sender's records, and not without end`() throws {
        try file.append(record(1))
        let handle = try #require(FileHandle(forWritingAtPath: fixture.path + "/outbox"))
        try handle.truncate(atOffset: UInt64(OutboxFile.longest))
        let done = OutboxRecord(number: 1, entry: Digest(ofKey: "key 1"), work: .done)
        // An append shows the length.
        try file.append(record(2))
        #expect(throws: Errno.fileTooLarge) { try file.append(record(3)) }
        try file.append(done)
        #expect(try records().last == done)
        try handle.truncate(atOffset: UInt64(2 * OutboxFile.longest))
        try file.append(done)
        #expect(throws: Errno.fileTooLarge) { try file.append(done) }
        try handle.close()
    }

    @Test func `writers of other processes record changes once one process requests it`() throws {
        let other = try StoreFixture.open(fixture.path)
        fixture.store.noteChanges(true)
        let text = Array("value".utf8)
        try other.put(text.span, for: Digest(ofKey: "key"), fixture.record("value"))
        #expect(try records().count == 1)
    }

    @Test func `an append goes to the file that has replaced the open one`() throws {
        try file.append(record(1))
        let offset = try #require(try file.mark()).size
        try file.append(record(2))
        // The replacement covers only the first record; the second was appended after the read.
        try file.replace(by: record(3).encoded(), readUpTo: offset)
        try file.append(record(4))
        #expect(try records().map(\.number) == [3, 2, 4])
    }

    @Test func `a file system without links loses no record`() throws {
        try file.append(record(1))
        let offset = try #require(try file.mark()).size
        try file.append(record(2))
        try SystemCall.withFaults { call in
            call == .link ? .error(Errno(rawValue: 1)) : nil
        } _: {
            try file.replace(by: [], readUpTo: offset)
        }
        try file.append(record(4))
        #expect(try records().map(\.number) == [2, 4])
        // The records are carried over already.
        try file.carryOver()
        #expect(try records().map(\.number) == [2, 4])
    }

    @Test func `a partial record loses only itself`() throws {
        try file.append(record(1))
        let path = fixture.path + "/outbox"
        let handle = try #require(FileHandle(forWritingAtPath: path))
        try handle.seekToEnd()
        try handle.write(contentsOf: record(2).encoded().prefix(40))
        try handle.close()
        try file.append(record(3))
        #expect(try records().map(\.number) == [1, 3])
    }

    @Test func `a partial record at the end is left for the next read`() throws {
        let bytes = record(1).encoded() + record(2).encoded().prefix(60)
        let (records, count) = OutboxRecord.all(in: bytes)
        #expect(records.map(\.number) == [1])
        #expect(count <= OutboxRecord.size + 60 && count >= OutboxRecord.size)
    }

    @Test func `if the outbox is unwritable, values are stored, and the dropped changes are counted`() throws
    {
        fixture.store.noteChanges(true)
        // A directory in place of the outbox.
        try FileManager.default.removeItem(atPath: fixture.path + "/outbox")
        try FileManager.default.createDirectory(
            atPath: fixture.path + "/outbox",
            withIntermediateDirectories: false
        )
        try fixture.put("value", "key")
        #expect(try fixture.get("key") == "value")
        #expect(fixture.store.counters[.remoteDropped] == 1)
    }

    @Test func `processes that open a new directory at the same time accept all remote values`() throws {
        for _ in 0..<50 {
            let fixture = try StoreFixture()
            let stores = try (0..<4).map { _ in try StoreFixture.open(fixture.path) }
            onThreads(stores.count) { stores[$0].noteChanges(true) }
            #expect(stores[0].control.notesChanges)
            let key = Digest(ofKey: "key")
            let lock = try stores[0].entries.stripes.lock(.exclusive, stripe: key.stripe)
            #expect(try stores[0].versions.latest(of: key, under: lock).version == .none)
            #expect(stores[0].versions.cleared == .none)
        }
    }

    @Test func `a directory whose control file and entries are lost still records changes`() throws {
        fixture.store.noteChanges(true)
        try fixture.put("value", "key")
        for name in ["control", "entries", "format"] {
            try FileManager.default.removeItem(atPath: fixture.path + "/" + name)
        }
        #expect(try StoreFixture.open(fixture.path).control.notesChanges)
    }

    @Test func `changes are recorded if a new control file finds an outbox`() throws {
        fixture.store.noteChanges(true)
        try fixture.put("value", "key")
        #expect(truncate(fixture.path + "/outbox", 0) == 0)
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        #expect(try StoreFixture.open(fixture.path).control.notesChanges)
    }

    @Test func `eight servers have one circuit breaker word each, shared by all processes`() throws {
        let control = fixture.store.control
        for name in UInt64(1)...8 {
            #expect(control.breaker(ofServer: name) == 0)
            #expect(control.replaceBreaker(ofServer: name, 0, by: name * 10))
        }
        let other = try StoreFixture.open(fixture.path)
        for name in UInt64(1)...8 { #expect(other.control.breaker(ofServer: name) == name * 10) }
        #expect(!control.replaceBreaker(ofServer: 1, 0, by: 1), "it is another one now")
        // The ninth server shares a word.
        #expect(control.breaker(ofServer: 9) != nil)
    }
}
