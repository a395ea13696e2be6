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
        #expect(fixture.store.control.setRemoteNotes(.changes))
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
        #expect(Set(noted.map(\.number)).count == 3)
    }

    @Test func `keys are recorded as avoided if no changes are sent`() throws {
        #expect(fixture.store.control.setRemoteNotes(.avoidance))
        try fixture.put("value", "key")
        #expect(try records().map(\.work) == [.avoid])
    }

    @Test func `writers of other processes record changes once one process requests it`() throws {
        let other = try StoreFixture.open(fixture.path)
        #expect(fixture.store.control.setRemoteNotes(.changes))
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

    @Test func `if the outbox is unwritable, the remote barrier is raised`() throws {
        #expect(fixture.store.control.setRemoteNotes(.changes))
        // A directory in place of the outbox.
        try FileManager.default.createDirectory(
            atPath: fixture.path + "/outbox",
            withIntermediateDirectories: false
        )
        let before = Timestamp.now
        try fixture.put("value", "key")
        #expect(try fixture.get("key") == "value")
        #expect(fixture.store.control.remoteBarrier >= before.wholeMilliseconds)
        #expect(fixture.store.counters[.remoteDropped] == 1)
    }

    @Test func `a removal rule raises the remote barrier`() throws {
        let before = Timestamp.now
        #expect(fixture.store.enact(.remove, .all, now: .now))
        #expect(fixture.store.control.remoteBarrier >= before.wholeMilliseconds)
        let barrier = fixture.store.control.remoteBarrier
        fixture.store.control.raiseRemoteBarrier(to: before)
        #expect(fixture.store.control.remoteBarrier == barrier, "it never falls")
    }

    @Test func `processes that open a new directory at the same time accept all remote values`() throws {
        for _ in 0..<50 {
            let fixture = try StoreFixture()
            let stores = try (0..<4).map { _ in try StoreFixture.open(fixture.path) }
            onThreads(stores.count) { stores[$0].note(.changes) }
            #expect(stores[0].control.remoteNotes == .changes)
            #expect(stores[0].control.remoteBarrier.milliseconds == 0)
        }
    }

    @Test func `after a period without records older remote values are not accepted`() throws {
        let store = fixture.store
        store.note(.changes)
        #expect(store.control.remoteNotes == .changes && store.control.remoteBarrier.milliseconds == 0)
        store.note(.avoidance)
        #expect(store.control.remoteNotes == .avoidance && store.control.remoteBarrier.milliseconds == 0)
        // As after a period without servers.
        #expect(store.control.setRemoteNotes(.nothing))
        let before = Timestamp.now
        store.note(.changes)
        #expect(store.control.remoteNotes == .changes)
        #expect(store.control.remoteBarrier >= before.wholeMilliseconds)
    }

    @Test func `a barrier with the maximum time is appended once`() throws {
        let store = fixture.store
        try #require(store.control.writableWords).store(UInt64.max, at: .remoteBarrier)
        var known = Timestamp(milliseconds: 0)
        for _ in 0..<3 {
            store.keepRemoteBarrier(laterThan: known)
            let records = OutboxRecord.all(in: try #require(try store.outbox.read(from: 0)).bytes).records
            guard case .barrier(let moment) = records.first?.work, records.count == 1 else {
                Issue.record("\(records)")
                return
            }
            known = Timestamp(milliseconds: moment)
        }
    }

    @Test func `a directory whose control file and entries are lost still records changes`() throws {
        fixture.store.note(.changes)
        for name in ["control", "entries", "format"] {
            try FileManager.default.removeItem(atPath: fixture.path + "/" + name)
        }
        #expect(try StoreFixture.open(fixture.path).control.remoteNotes == .avoidance)
    }

    @Test(arguments: [0, OutboxFile.longest])
    func `changes are recorded if a new control file finds an outbox`(length: Int64) throws {
        fixture.store.note(.changes)
        #expect(truncate(fixture.path + "/outbox", off_t(length)) == 0)
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let before = Timestamp.now
        let control = try StoreFixture.open(fixture.path).control
        #expect(control.remoteNotes == .avoidance)
        #expect(
            (control.remoteBarrier >= before.wholeMilliseconds) == (length > 0),
            "not known of a full file"
        )
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
