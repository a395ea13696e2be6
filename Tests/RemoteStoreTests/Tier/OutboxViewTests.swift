// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import RemoteStore

/// Views of the outbox in several processes, while another file replaces it.
@Suite(.takesTurns) struct OutboxViewTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Returns the outbox of a cache as opened by a new process.
    private func outbox(_ name: String = "cache") throws -> OutboxFile {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        let cache = try SharedCache(at: "\(directory.path)/\(name)", configuration: configuration)
        return try cache.withStore { (store, _) throws(CacheError) in store.outbox }
    }

    private func record(_ number: UInt64) -> OutboxRecord {
        OutboxRecord(number: number, entry: Digest(ofKey: "\(number)"), work: .remove)
    }

    private func known(_ view: OutboxView) -> [UInt64] { view.pending.map(\.number).sorted() }

    @Test func `a replacement that is interrupted anywhere loses no records, and views see all`() throws {
        for step in 0..<100 {
            let (sender, writer) = (try outbox("\(step)"), try outbox("\(step)"))
            let early = OutboxView()
            for number in UInt64(1)...3 { try writer.append(record(number)) }
            try early.follow(sender)
            let (read, offset) = (
                early.pending.flatMap { $0.encoded() }, try #require(try sender.mark()).size
            )
            // Records appended since the read, one of them done.
            for late in [
                record(4), record(5), OutboxRecord(number: 5, entry: Digest(ofKey: "5"), work: .done),
            ] {
                try writer.append(late)
            }
            let count = Locked(0)
            var isWhole = true
            do {
                // From this step on all system calls fail, as if the process had been killed.
                try SystemCall.withFaults { _ in
                    count.withLock { count in
                        count += 1
                        return count > step ? .error(.inputOutput) : nil
                    }
                } _: {
                    try sender.replace(by: read, readUpTo: offset)
                }
            } catch {
                isWhole = false
            }
            let fresh = OutboxView()
            try fresh.follow(sender)
            #expect(known(fresh) == [1, 2, 3, 4], "a process that begins now, step \(step)")
            try early.follow(sender)
            #expect(known(early) == [1, 2, 3, 4], "one that has read the file before, step \(step)")
            try writer.append(record(6))
            try early.follow(sender)
            try fresh.follow(sender)
            #expect(known(early) == [1, 2, 3, 4, 6] && known(fresh) == known(early), "step \(step)")
            // The next sender carries over the records.
            try sender.carryOver()
            try writer.append(record(7))
            try early.follow(sender)
            let late = OutboxView()
            try late.follow(sender)
            #expect(known(late) == [1, 2, 3, 4, 6, 7] && known(early) == known(late), "step \(step)")
            #expect(!late.isToBeCarriedOver)
            try sender.replace(
                by: late.pending.flatMap { $0.encoded() },
                readUpTo: #require(try sender.mark()).size
            )
            let last = OutboxView()
            try last.follow(sender)
            #expect(known(last) == known(late), "step \(step)")
            #expect(directory.files(below: "\(step)").filter { $0.contains("outbox") } == ["outbox"])
            if isWhole { return #expect(step > 10) }
        }
        Issue.record("it never ends")
    }

    @Test func `a new outbox with the inode and length of the old one is read from the start`() throws {
        let file = try outbox()
        let view = OutboxView()
        for number in UInt64(1)...2 { try file.append(record(number)) }
        try view.follow(file)
        #expect(known(view) == [1, 2])
        // As if the inode were reused at once: the same file with other records. Change times have the resolution of a
        // tick, so the write is repeated until the time differs.
        let (before, bytes) = (try file.mark(), Data(record(3).encoded() + record(4).encoded()))
        waitUntil("it has another time of change") {
            let handle = FileHandle(forWritingAtPath: directory.path + "/cache/outbox")
            try? handle?.write(contentsOf: bytes)
            try? handle?.close()
            return (try? file.mark()) != before
        }
        try view.follow(file)
        #expect(known(view) == [3, 4])
    }

    @Test func `records appended while a backup has a hard link are not lost`() throws {
        let (sender, writer) = (try outbox(), try outbox())
        try writer.append(record(1))
        try FileManager.default.linkItem(
            atPath: directory.path + "/cache/outbox",
            toPath: directory.path + "/backup"
        )
        let view = OutboxView()
        try view.follow(sender)
        try sender.replace(by: record(1).encoded(), readUpTo: Int64(OutboxRecord.size))
        try writer.append(record(2))
        try view.follow(sender)
        #expect(known(view) == [1, 2])
    }

    @Test func `an append recreates a deleted file`() throws {
        let file = try outbox()
        let view = OutboxView()
        try file.append(record(1))
        try view.follow(file)
        try FileManager.default.removeItem(atPath: directory.path + "/cache/outbox")
        try view.follow(file)
        #expect(known(view) == [])
        try file.append(record(2))
        try view.follow(file)
        #expect(known(view) == [2])
    }
}
