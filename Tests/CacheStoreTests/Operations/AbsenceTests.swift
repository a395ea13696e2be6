// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import CacheStore

/// Keys without an entry, which are reported as absent until a process begins to write them.
///
/// ``GenerationModel`` checks the same in every interleaving.
@Suite(.takesTurns) struct AbsenceTests {
    let fixture: StoreFixture
    let other: Store
    let key = Digest(ofKey: "key")

    init() throws {
        fixture = try StoreFixture()
        other = try StoreFixture.open(fixture.path)
        // The filter then contains the key and does not answer.
        try fixture.put("value", "key")
        _ = try other.remove(key)
    }

    private func publishUnnoticed(_ value: String) throws {
        let bytes = fixture.record(value).encoded(for: key)
        let lock = try other.entries.stripes.lock(.shared, stripe: key.stripe)
        _ = try other.entries.write(bytes, for: key, accessed: nil, under: lock)
        lock.release()
    }

    @Test func `an absence is reported without disk access until another store puts the key`() throws {
        #expect(try fixture.get("key") == nil)
        // By hand, which raises no generation.
        try publishUnnoticed("value")
        #expect(try fixture.get("key") == nil)
        try other.put(Array("value".utf8).span, for: key, fixture.record("value"))
        #expect(try fixture.get("key") == "value")
    }

    @Test func `an absence seen during a write is not kept`() throws {
        let writing = try other.control.beginChange(of: key)
        #expect(try fixture.get("key") == nil)
        // Other processes may see the published entry before the writer ends.
        try fixture.put("other", "other")
        try publishUnnoticed("other")
        #expect(try fixture.get("key") == "other")
        writing.end()
        #expect(try fixture.get("key") == "other")
    }

    /// Interrupts the reader repeatedly at random places of its get.
    ///
    /// It shares one processor with the writer, and must access the disk each time, as it raises the generation itself.
    @Test func `an absence seen before a put is not kept under the generation after it`() throws {
        let race = Race(reader: fixture.store, writer: other, key: key, record: fixture.record("value"))
        let done = DispatchSemaphore(value: 0)
        for role in [race.write, race.read] {
            Thread.detachNewThread {
                ownOneProcessor()
                role()
                done.signal()
            }
        }
        for _ in 0..<2 { done.wait() }
        #expect(race.failure.withLock { $0 } == nil)
        #expect(race.rounds.load(ordering: .relaxed) == Race.rounds)
    }
}

/// A key that one thread puts and removes while another one reads it.
private final class Race: Sendable {
    /// Ten times the most rounds, in eight runs, that it took to detect a generation read after the entry.
    static let rounds = 50

    let reader: Store
    let writer: Store
    let key: Digest
    let record: Record
    /// Whether the put has returned; the writer removes nothing until the reader resets this.
    let isThere = Atomic<Bool>(false)
    let isOver = Atomic<Bool>(false)
    let rounds = Atomic<Int>(0)
    let failure = Locked<String?>(nil)

    init(reader: Store, writer: Store, key: Digest, record: Record) {
        self.reader = reader
        self.writer = writer
        self.key = key
        self.record = record
    }

    @Sendable func write() {
        defer { isOver.store(true, ordering: .releasing) }
        do {
            for _ in 0..<Self.rounds where failure.withLock({ $0 == nil }) {
                // The reader runs until it is interrupted.
                usleep(50)
                try writer.put(Array("value".utf8).span, for: key, record)
                isThere.store(true, ordering: .releasing)
                while isThere.load(ordering: .acquiring) { sched_yield() }
                _ = try writer.remove(key)
                rounds.add(1, ordering: .relaxed)
            }
        } catch {
            failure.withLock { $0 = "\(error)" }
        }
    }

    @Sendable func read() {
        do {
            while !isOver.load(ordering: .acquiring) {
                try reader.control.beginChange(of: key).end()
                _ = try reader.get(key, now: .now, allowingStale: false)
                guard isThere.load(ordering: .acquiring) else { continue }
                if try reader.get(key, now: .now, allowingStale: false) == nil {
                    failure.withLock { $0 = "missed after the put had returned" }
                }
                isThere.store(false, ordering: .releasing)
            }
        } catch {
            failure.withLock { $0 = "\(error)" }
            isThere.store(false, ordering: .releasing)
        }
    }
}

/// Binds the calling thread to the first processor that it may use.
///
/// Looks the two functions up by name, as Swift's Glibc omits them.
private func ownOneProcessor() {
    typealias Affinity = @convention(c) (Int32, Int, UnsafeMutableRawPointer) -> Int32
    func function(_ name: String) -> Affinity? {
        dlsym(nil, name).map { unsafeBitCast($0, to: Affinity.self) }
    }
    guard let get = function("sched_getaffinity"), let set = function("sched_setaffinity") else { return }
    var processors = [UInt8](repeating: 0, count: 1024)
    processors.withUnsafeMutableBytes { bytes in
        guard let start = bytes.baseAddress, get(0, bytes.count, start) == 0,
            let first = bytes.firstIndex(where: { $0 != 0 })
        else { return }
        let lowest = bytes[first] & (~bytes[first] &+ 1)
        for index in bytes.indices { bytes[index] = 0 }
        bytes[first] = lowest
        _ = set(0, bytes.count, start)
    }
}
