// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// A queue that `#expect` can change, since it does not accept mutating calls.
private final class Queue {
    private var writes: PendingWrites

    init(_ limits: CacheConfiguration.WriteBehind) { writes = PendingWrites(limits: limits) }

    var count: Int { writes.count }
    var bytes: Int { writes.bytes }
    var sequence: Int { writes.sequence }

    func add(_ write: PendingWrite) -> Bool {
        var old: PendingWrite?
        return writes.add(write, replacing: &old)
    }
    func takeNext() -> PendingWrite? { writes.takeNext() }
    func isPublishing(_ key: Digest) -> Bool { writes.isPublishing(key) }
    func take(_ key: Digest) -> PendingWrite? { writes.take(key) }
    func latest(of key: Digest) -> PendingWrite? { writes.latest(of: key) }
    func finish(_ write: PendingWrite) { writes.finish(write) }
    func isFinished(upTo sequence: Int) -> Bool { writes.isFinished(upTo: sequence) }
}

@Suite(.takesTurns) struct PendingWritesTests {
    private func write(_ key: String, _ value: String = "value") -> PendingWrite {
        let data = Data(value.utf8)
        let digest = Digest(ofKey: key)
        let draft = Record(content: Content(digest: digest, length: data.count, checksum: 0), created: .now)
        return PendingWrite(data, forKey: key, in: .callers, digest, draft: draft)
    }

    private func pending(bytes: Int = 1000, count: Int = 100) -> Queue {
        Queue(CacheConfiguration.WriteBehind(size: .bytes(bytes), count: count))
    }

    @Test func `puts are taken in the order of their arrival`() {
        let pending = pending()
        for key in ["a", "b", "c"] { #expect(pending.add(write(key))) }
        #expect(
            [pending.takeNext(), pending.takeNext(), pending.takeNext()].map { $0?.key } == ["a", "b", "c"]
        )
        #expect(pending.takeNext() == nil)
    }

    @Test func `the last of several puts of one key is published, in the first one's position`() {
        let pending = pending()
        for (key, value) in [("a", "1"), ("b", "2"), ("a", "3")] { #expect(pending.add(write(key, value))) }
        #expect(pending.count == 2)
        #expect(pending.bytes == 2)
        #expect(pending.takeNext()?.value == Data("3".utf8))
        #expect(pending.takeNext()?.value == Data("2".utf8))
        #expect(pending.takeNext() == nil)
    }

    @Test func `a key's next put waits until the previous one is published`() throws {
        let pending = pending()
        #expect(pending.add(write("a", "1")))
        let first = try #require(pending.takeNext())
        #expect(pending.add(write("a", "2")))
        #expect(pending.takeNext() == nil)
        #expect(pending.latest(of: first.keyDigest)?.value == Data("2".utf8))
        pending.finish(first)
        #expect(pending.takeNext()?.value == Data("2".utf8))
    }

    @Test func `the limits count waiting puts and those being published`() throws {
        let pending = pending(bytes: 10, count: 2)
        #expect(pending.add(write("a", "12345")))
        let first = try #require(pending.takeNext())
        #expect(!pending.add(write("b", "123456")))
        #expect(pending.add(write("b", "12345")))
        #expect(!pending.add(write("c", "")))
        // The replaced put makes room for it.
        #expect(pending.add(write("b", "1234")))
        pending.finish(first)
        #expect(pending.bytes == 4)
        #expect(pending.add(write("c", "123456")))
    }

    @Test func `a caller can take a key out of turn`() throws {
        let pending = pending()
        for key in ["a", "b"] { #expect(pending.add(write(key))) }
        let digest = Digest(ofKey: "b")
        #expect(!pending.isPublishing(digest))
        let taken = try #require(pending.take(digest))
        #expect(pending.isPublishing(digest))
        #expect(pending.takeNext()?.key == "a")
        #expect(pending.takeNext() == nil)
        pending.finish(taken)
        #expect(!pending.isPublishing(digest) && pending.take(digest) == nil)
    }

    @Test func `a flush waits only for the puts before it`() throws {
        let pending = pending()
        #expect(pending.add(write("a")))
        let target = pending.sequence
        #expect(pending.add(write("b")))
        let first = try #require(pending.takeNext())
        #expect(!pending.isFinished(upTo: target))
        pending.finish(first)
        #expect(pending.isFinished(upTo: target))
        #expect(!pending.isFinished(upTo: pending.sequence))
    }

    @Test func `ten thousand puts keep their order, even if others are taken out of turn`() {
        let pending = pending(bytes: .max, count: .max)
        var left: [String] = []
        for round in 0..<10_000 {
            #expect(pending.add(write("\(round)")))
            if round % 3 == 0, let taken = pending.take(Digest(ofKey: "\(round)")) {
                pending.finish(taken)
            }
            if round % 2 == 0, let next = pending.takeNext() {
                left.append(next.key)
                pending.finish(next)
            }
        }
        while let next = pending.takeNext() {
            left.append(next.key)
            pending.finish(next)
        }
        #expect(left == (0..<10_000).filter { $0 % 3 != 0 }.map(String.init))
        #expect(pending.count == 0 && pending.bytes == 0)
    }
}
