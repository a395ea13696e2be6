// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

/// Serialized, because getopt keeps its state in globals.
@Suite(.serialized, .takesTurns)
struct RunOrderTests {
    static func order(_ words: String...) throws -> RunOrder {
        let options = RunCommand.options + Option.common
        let scanned = try OptionScanner.scan(words, options.map(\.specification), stopsAtOperand: true)
        return try RunOrder(Arguments(scanned, options: options, command: "run", directory: "/nowhere"))
    }

    @Test func `options after the command's name belong to the command`() throws {
        func words(_ order: RunOrder) -> [String] { order.words.map { String(decoding: $0, as: UTF8.self) } }
        #expect(try words(Self.order("sh", "-c", "x", "--ttl", "1")) == ["sh", "-c", "x", "--ttl", "1"])
        #expect(try words(Self.order("--cwd", "--", "--odd")) == ["--odd"])
    }

    @Test func `results live for a minute by default, and failures are not cached`() throws {
        let order = try Self.order("x")
        #expect(order.lifetime == .after(.seconds(60)))
        #expect(order.failures == nil)
    }

    @Test func `failures live as long as results unless they have a time to live`() throws {
        #expect(try Self.order("--ttl", "5", "--cache-failures", "x").failures == .after(.seconds(5)))
        #expect(try Self.order("--cache-failures=2s", "x").failures == .after(.seconds(2)))
        #expect(try Self.order("--ttl", "never", "--cache-failures", "x").failures == .never)
        #expect(try Self.order("--cache-failures=never", "x").failures == .never)
    }

    @Test(arguments: [
        [], ["--ttl", "0", "x"], ["--stale", "0", "x"], ["--ttl", "never", "--stale", "1", "x"],
        ["--key", "", "x"], ["--key", "k", "--cwd", "x"], ["--key", "k", "--hash", "f", "x"],
        ["--env", "A=B", "x"], ["--env", "A,B", "x"], ["--env", "A B", "x"],
        ["--env", "", "x"], ["--modtime", "", "x"], ["--hash", "", "x"],
        ["--cache-failures=soon", "x"],
    ])
    func `invalid and conflicting options are usage errors`(words: [String]) {
        let options = RunCommand.options + Option.common
        #expect {
            let scanned = try OptionScanner.scan(words, options.map(\.specification), stopsAtOperand: true)
            _ = try RunOrder(Arguments(scanned, options: options, command: "run", directory: "/nowhere"))
        } throws: {
            ($0 as? Failure)?.status == .usage
        }
    }

    @Test func `a scope is prefixed to given and to generated keys`() throws {
        #expect(try Self.order("--scope", "s/", "--key", "k", "x").key == "s/k")
        let plain = try Self.order("x").key
        #expect(plain.hasPrefix("run:"))
        #expect(try Self.order("--scope", "s/", "x").key == "s/" + plain)
        #expect(try Self.order("--scope", "", "x").key == plain)
    }

    @Test func `the content of a hashed file, or its absence, is part of the key`() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/file"
        var keys = [try Self.order("x").key, try Self.order("--hash", file, "x").key]
        for content in ["1", "2"] {
            makeFile(file, content)
            keys.append(try Self.order("--hash", file, "x").key)
        }
        #expect(Set(keys).count == 4)
        // The time at which the file was written does not matter.
        makeFile(file, "1")
        #expect(try Self.order("--hash", file, "x").key == keys[2])
        // CMD runs even if a file can't be read.
        let order = try Self.order("--hash", directory.path, "x")
        #expect(order.key.isEmpty && order.obstacle?.status == .inputOutput)
    }

    /// Returns an entry that was stored with these lifetimes.
    static func entry(_ expires: Expiration, staleFor: Duration? = nil) throws -> CacheEntry {
        let directory = try TemporaryDirectory()
        return try withExtendedLifetime(directory) {
            let cache = try SharedCache(at: directory.path + "/cache")
            try cache.put("x", forKey: "k", options: PutOptions(expires: expires, staleFor: staleFor))
            return try #require(try cache.entry(forKey: "k", reading: ReadOptions(acceptsStale: true)))
        }
    }

    @Test func `the age of a result is limited by the entry's and by the reader's time to live`() throws {
        let entry = try Self.entry(.seconds(100), staleFor: .seconds(1000))
        func verdict(_ order: RunOrder, age: Double, status: Int32 = 0) -> RunOrder.Verdict {
            order.judge(entry, status: status, now: entry.created.addingTimeInterval(age))
        }
        #expect(verdict(try Self.order("--ttl", "50", "x"), age: 49) == .fresh)
        #expect(verdict(try Self.order("--ttl", "50", "x"), age: 51) == .useless)
        #expect(verdict(try Self.order("--ttl", "500", "x"), age: 99) == .fresh)
        #expect(verdict(try Self.order("--ttl", "500", "x"), age: 101) == .useless)
        #expect(verdict(try Self.order("--ttl", "50", "--stale", "10", "x"), age: 59) == .stale)
        #expect(verdict(try Self.order("--ttl", "50", "--stale", "10", "x"), age: 61) == .useless)
        #expect(verdict(try Self.order("--ttl", "never", "x"), age: 99) == .fresh)
        #expect(verdict(try Self.order("--ttl", "never", "x"), age: 101) == .useless)
    }

    @Test func `a failure is used only with cache-failures, and never stale`() throws {
        let entry = try Self.entry(.never)
        func verdict(_ order: RunOrder, age: Double) -> RunOrder.Verdict {
            order.judge(entry, status: 1, now: entry.created.addingTimeInterval(age))
        }
        #expect(verdict(try Self.order("x"), age: 1) == .useless)
        #expect(verdict(try Self.order("--cache-failures", "x"), age: 1) == .fresh)
        #expect(verdict(try Self.order("--cache-failures=5", "x"), age: 6) == .useless)
        #expect(verdict(try Self.order("--cache-failures=5", "--stale", "9", "x"), age: 6) == .useless)
    }
}
