// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// A store whose small values are in packs behaves like one whose values are in files.
///
/// Two stores on one directory behave like two processes.
@Suite(.takesTurns) struct StorePacksTests {
    let directory: TemporaryDirectory
    let one: Store
    let other: Store
    let key = Digest(ofKey: "key")

    init() throws {
        directory = try TemporaryDirectory()
        one = try Self.open(directory)
        other = try Self.open(directory)
    }

    private static func open(_ directory: TemporaryDirectory, _ isPacking: Bool = true) throws -> Store {
        var options = StoreOptions()
        options.packsSmallValues = isPacking
        return try Store(at: directory.path + "/cache", options: options)
    }

    private func record(_ value: [UInt8], created: Timestamp = .now) -> Record {
        Record(content: Content(of: value.span), created: created)
    }

    private func put(_ value: String, in store: Store, expires: Timestamp? = nil, created: Timestamp = .now)
        throws
    {
        let bytes = Array(value.utf8)
        var record = record(bytes, created: created)
        record.expires = expires
        record.key = "key"
        try store.put(bytes.span, for: key, record)
    }

    /// A value that is too long for a pack.
    private static let long = String(repeating: "long", count: 10_000)

    private func get(from store: Store, now: Timestamp = .now) throws -> String? {
        try store.get(key, now: now, allowingStale: false).map { String(decoding: $0.value, as: UTF8.self) }
    }

    private func isPacked() throws -> Bool { try one.isPacked(key) }

    private var entries: [String] { directory.files(below: "cache/entries") }

    @Test func `a small value is put into a pack, and both processes get it`() throws {
        try put("first", in: one)
        #expect(try isPacked() && entries.isEmpty)
        #expect(try get(from: other) == "first")
        try put("second", in: other)
        #expect(try get(from: one) == "second" && entries.isEmpty)
        let hit = try #require(try one.get(key, now: .now, allowingStale: false))
        #expect(hit.record.key == "key" && hit.record.content == Content(of: Array("second".utf8).span))
        #expect(hit.entry.generation == nil, "a value in a pack is not held in memory")
    }

    @Test func `a key changes between packs and files with the size of its value`() throws {
        try put("small", in: one)
        try put(Self.long, in: other)
        #expect(try !isPacked() && entries.count == 1)
        #expect(try get(from: one) == Self.long)
        try put("small again", in: one)
        #expect(try isPacked() && entries.isEmpty)
        #expect(try get(from: other) == "small again")
    }

    @Test func `a removal removes the value wherever it is`() throws {
        try put("value", in: one)
        #expect(try other.remove(key, now: .now))
        #expect(try !isPacked() && get(from: one) == nil)
        #expect(try !one.remove(key, now: .now))
        try put(Self.long, in: one)
        #expect(try other.remove(key, now: .now))
        try put("expired", in: one, expires: .now - .seconds(1))
        #expect(try !one.remove(key, now: .now), "an expired value counts as absent")
        #expect(try !isPacked())
    }

    @Test func `a value in a pack expires`() throws {
        let now = Timestamp.now
        try put("value", in: one, expires: now + .seconds(10))
        #expect(try isPacked())
        #expect(try get(from: other, now: now + .seconds(9)) == "value")
        #expect(try get(from: other, now: now + .seconds(10)) == nil)
    }

    @Test func `a rule applies to values in packs, and not to later ones`() throws {
        try put("value", in: one)
        #expect(one.enact(.remove, .prefix("k"), now: .now))
        #expect(try get(from: other) == nil)
        try put("later", in: other)
        #expect(try isPacked() && get(from: one) == "later")
        #expect(one.enact(.remove, .prefix("other"), now: .now))
        #expect(try get(from: other) == "later")
        #expect(one.enact(.remove, .prefix("k"), now: .now))
        try other.unpack(key)
        #expect(try !isPacked() && get(from: one) == nil && entries.isEmpty)
    }

    /// A rule applies by creation time, so its number must follow the value into files.
    @Test func `a value that a rule does not remove is not removed once it is in files`() throws {
        let early = Timestamp.now - .seconds(100)
        #expect(one.enact(.remove, .prefix("k"), now: .now))
        try put("value", in: one, created: early)
        #expect(try isPacked() && get(from: other) == "value")
        try other.unpack(key)
        #expect(try !isPacked() && entries.count == 1 && get(from: one) == "value")
    }

    @Test func `conditional writes see a value in a pack`() throws {
        try put("value", in: one)
        let bytes = Array("new".utf8)
        #expect(try one.put(bytes.span, for: key, record(bytes), ifStill: nil) == .conflict)
        let observed = try other.observe(key, now: .now)
        #expect(observed.value.map { String(decoding: $0, as: UTF8.self) } == "value")
        #expect(try !isPacked() && entries.count == 1, "it is in files now")
        #expect(try other.put(bytes.span, for: key, record(bytes), ifStill: observed.stored).isWritten)
        #expect(try get(from: one) == "new")
        // Another process stores the key in a pack after it was observed.
        let seen = try other.observe(key, now: .now).stored
        try put("packed", in: one)
        #expect(try other.put(bytes.span, for: key, record(bytes), ifStill: seen) == .conflict)
        #expect(try get(from: other) == "packed")
    }

    @Test func `a touch, a new expiration and a file of the value work for a value in a pack`() throws {
        try put("value", in: one)
        #expect(try other.touch(key) { .now })
        try put("value", in: one)
        let live = try #require(try other.liveEntry(key, now: .now, allowingStale: false))
        var record = live.record
        record.expires = .now + .seconds(60)
        #expect(try other.rewrite(record, for: key, ifStill: live.stored, now: .now).isWritten)
        #expect(try one.get(key, now: .now, allowingStale: false)?.record.expires == record.expires)
        try put("file", in: one)
        guard let file = try other.open(key, now: .now, allowingStale: false) else {
            Issue.record("a miss")
            return
        }
        #expect(try file.value.read(10) == Array("file".utf8))
    }

    @Test func `a value kept in memory alone takes the place of a value in a pack`() throws {
        try put("value", in: one)
        #expect(try other.vacate(key) != nil)
        #expect(try !isPacked() && get(from: one) == nil)
        try put("value", in: one)
        #expect(try other.vacateIfPresent(key) != nil && !isPacked())
    }

    @Test func `a value is held under a generation that ends when the key gets a word`() throws {
        try put(Self.long, in: one)
        let held = try #require(try one.get(key, now: .now, allowingStale: false)?.entry.generation)
        #expect(one.isCurrent(held) == true)
        try put("small", in: other)
        #expect(one.isCurrent(held) == false)
    }

    @Test func `a damaged record is a miss, until the key is stored again`() throws {
        try put("value", in: one)
        let word = try #require(try one.packs?.word(of: key))
        let path = directory.path + "/cache/packs/pack-\(word.pack)"
        let file = try FileDescriptor(opening: path, .readWrite)
        #expect(try file.write([0xff].span, at: word.offset + 50) == 1)
        #expect(try get(from: other) == nil)
        try other.unpack(key)
        #expect(try !isPacked())
        try put("again", in: one)
        #expect(try get(from: other) == "again")
    }

    @Test func `values that accesses prolong, and those of a limited cache, are in files`() throws {
        let bytes = Array("value".utf8)
        var sliding = record(bytes)
        sliding.idleLifetime = .seconds(60)
        try one.put(bytes.span, for: key, sliding)
        #expect(try !isPacked() && get(from: other) == "value")
        try one.configure { (configuration) throws(CacheError) in configuration.limits.maximumEntries = 100 }
        one.followConfiguration()
        try put("limited", in: one)
        #expect(try !isPacked() && get(from: other) == "limited")
    }

    @Test func `an overwrite takes one system call, a new key three, and a get none`() throws {
        try put("value", in: one)
        _ = try get(from: one)
        func traced(_ body: () throws -> Void) throws -> [SystemCall] {
            let calls = Locked<[SystemCall]>([])
            try SystemCall.withFaults(
                { call in
                    calls.withLock { $0.append(call) }
                    return nil
                },
                body
            )
            return calls.withLock { $0 }
        }
        #expect(try traced { try put("other", in: one) } == [.write])
        #expect(try traced { _ = try get(from: one) }.isEmpty)
        let bytes = Array("value".utf8)
        #expect(try one.remove(key, now: .now))
        let new = try traced { try one.put(bytes.span, for: key, record(bytes)) }
        #expect(new.count <= 3 && new.contains(.write) && Set(new) == [.lock, .write], "\(new)")
        #expect(
            try traced { _ = try one.get(Digest(ofKey: "missing"), now: .now, allowingStale: false) }.isEmpty
        )
    }

    /// The calls that may change a value while it is in a pack.
    @Test(arguments: [UInt64.random(in: 0...UInt64.max), 1, 2])
    func `random calls of two processes agree with a dictionary`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var expected: [String: String] = [:]
        var observed: [String: (entry: StoredEntry?, value: String?)] = [:]
        for step in 0..<600 {
            let name = "key \(Int.random(in: 0..<4, using: &random))"
            let (key, store) = (Digest(ofKey: name), Bool.random(using: &random) ? one : other)
            let isLong = Int.random(in: 0..<4, using: &random) == 0
            let value = isLong ? Self.long + "\(step)" : "\(step)"
            let bytes = Array(value.utf8)
            var call = Int.random(in: 0..<12, using: &random)
            switch call {
            case 0..<3:
                try store.put(bytes.span, for: key, record(bytes))
                expected[name] = value
            case 3: #expect(try store.remove(key, now: .now) == (expected.removeValue(forKey: name) != nil))
            case 4:
                let isAbsent = expected[name] == nil
                let entry = try store.observe(key, now: .now).stored
                #expect((entry == nil) == isAbsent)
                #expect(
                    try store.put(bytes.span, for: key, record(bytes), ifStill: nil).isWritten == isAbsent
                )
                if isAbsent { expected[name] = value }
            case 5: observed[name] = (try store.observe(key, now: .now).stored, expected[name])
            case 6:
                guard let seen = observed.removeValue(forKey: name) else { break }
                let result = try store.put(bytes.span, for: key, record(bytes), ifStill: seen.entry)
                #expect(seen.value == expected[name] || !result.isWritten)
                if result.isWritten { expected[name] = value }
            case 7: try store.unpack(key)
            case 8: #expect(try store.touch(key) { .now } == (expected[name] != nil))
            case 9:
                #expect(
                    try (store.liveEntry(key, now: .now, allowingStale: false) != nil)
                        == (expected[name] != nil)
                )
            case 10 where step % 7 == 0:
                #expect(store.enact(.remove, .prefix(""), now: .now))
                expected = [:]
            default: call = -1
            }
            for store in [one, other] {
                let found = try store.get(key, now: .now, allowingStale: false)
                let text = found.map { String(decoding: $0.value, as: UTF8.self) }
                guard text == expected[name] else {
                    Issue.record("seed \(seed), step \(step), call \(call): \(text?.prefix(20) ?? "nothing")")
                    return
                }
            }
        }
    }

    @Test func `a get never returns an older value, while another process moves the value back and forth`()
        throws
    {
        let isOver = Locked(false)
        let latest = Locked(0)
        let thread = Thread {
            var number = 0
            while !isOver.withLock({ $0 }) {
                number += 1
                #expect(throws: Never.self) {
                    switch number % 4 {
                    case 0: try self.put(Self.long + "\(number)", in: self.one)
                    case 3: try self.one.unpack(self.key)
                    default: try self.put("\(number)", in: self.one)
                    }
                }
                if number % 4 != 3 { latest.withLock { $0 = number } }
            }
        }
        try put("0", in: one)
        thread.start()
        defer {
            isOver.withLock { $0 = true }
            waitUntil("the thread has ended") { thread.isFinished }
        }
        var seen = 0
        for _ in 0..<2000 {
            let floor = latest.withLock { $0 }
            if seen % 3 == 0 {
                let isPresent = try other.liveEntry(key, now: .now, allowingStale: false) != nil
                #expect(isPresent, "the key is never without a value")
            }
            let text = try #require(try get(from: other), "the key is never without a value")
            let number = Int(text.drop { $0.isLetter }) ?? -1
            #expect(number >= max(floor, seen))
            seen = number
        }
    }

    /// The put into files holds the stripe while the other process replaces the value in the pack.
    @Test func `a value that another process has replaced in a pack meanwhile is not held in memory`() throws
    {
        let otherStore = other
        var options = StoreOptions()
        options.packsSmallValues = true
        options.atStep = { step in
            guard step == .entryLocked else { return }
            let bytes = Array("packed".utf8)
            #expect(throws: Never.self) {
                let record = Record(content: Content(of: bytes.span), created: .now)
                try otherStore.put(bytes.span, for: Digest(ofKey: "key"), record)
            }
        }
        let third = try Store(at: directory.path + "/cache", options: options)
        try put("value", in: one)
        let bytes = Array(Self.long.utf8)
        #expect(try third.put(bytes.span, for: key, record(bytes)) == nil)
        #expect(try get(from: third) == "packed")
    }

    @Test func `a value with long metadata and the values of a durable cache are in files`() throws {
        var options = StoreOptions()
        options.packsSmallValues = true
        options.isDurable = true
        let durable = try Store(at: directory.path + "/cache", options: options)
        try put("value", in: durable)
        #expect(try !isPacked() && get(from: one) == "value")
        let bytes = Array("described".utf8)
        var described = record(bytes)
        described.details.metadata = ["note": String(repeating: "m", count: 65_400)]
        try one.put(bytes.span, for: key, described)
        #expect(try !isPacked() && get(from: other) == "described")
    }
}
