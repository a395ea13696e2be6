// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct NamespaceTests {
    private let fixture: CacheFixture
    private var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try CacheFixture { $0.memory = CacheConfiguration.Memory() }
    }

    private func bytes(_ text: String) -> Data { Data(text.utf8) }

    /// Returns all keys in the cache, with their prefixes.
    private func keys() throws -> [String] {
        try cache.entries().compactMap { try $0.get().key }.sorted()
    }

    @Test func `a full key consists of the prefixes, outermost first, and the view's key`() throws {
        let view = cache.namespace("a/").namespace("b/")
        try view.put(bytes("value"), forKey: "key")
        #expect(try cache.get(forKey: "a/b/key")?.value == bytes("value"))
        #expect(try view.get(forKey: "key")?.source == .memory, "views of bytes share that")
        #expect(try view.get(forKey: "a/b/key") == nil)
        #expect(view.prefix == "a/b/" && view.cache === cache)
        try cache.put("other", forKey: "a/b/other")
        #expect(try view.get(forKey: "other")?.value == bytes("other"))
        let typed = cache.namespace("a/").typed([Int].self).namespace("b/")
        try typed.put([1, 2], forKey: "list")
        #expect(try cache.get(forKey: "a/b/list")?.value == bytes("[1,2]"))
    }

    @Test func `a view returns an entry's key without the prefix, or nil outside the namespace`() throws {
        let view = cache.namespace("ä/")
        try view.put(bytes("value"), forKey: "\u{301}key")
        let entry = try #require(try view.entry(forKey: "\u{301}key"))
        #expect(entry.key == "ä/\u{301}key")
        let own = try #require(view.key(of: entry))
        #expect(own.utf8.elementsEqual("\u{301}key".utf8))
        #expect(cache.namespace("b/").key(of: entry) == nil)
    }

    @Test func `counters, files and chunks use the key with the prefix`() async throws {
        let view = cache.namespace("a/", options: PutOptions(tags: ["t"]))
        #expect(try await view.increment(forKey: "number", by: 2) == 2)
        #expect(try await view.increment(forKey: "number") == 3)
        #expect(try await cache.get(forKey: "a/number")?.value == bytes("3"))
        let files = try TemporaryDirectory()
        try bytes("content").write(to: URL(fileURLWithPath: files.path + "/in"))
        let entry = try await view.put(contentsOfFile: files.path + "/in", forKey: "file")
        #expect(entry.key == "a/file" && entry.tags == ["t"])
        #expect(try await view.copyValue(forKey: "file", toFile: files.path + "/out")?.size == 7)
        #expect(FileManager.default.contents(atPath: files.path + "/out") == bytes("content"))
        #expect(try await view.copyValue(forKey: "other", toFile: files.path + "/out") == nil)
        var read = Data()
        for try await piece in try #require(try await view.chunks(forKey: "file", size: 3)) { read += piece }
        #expect(read == bytes("content"))
        let length = try await cache.blocking { _ in
            try view.withDescriptor(forKey: "file") { descriptor, entry in
                entry.size + Int(min(descriptor, 0))
            }
        }
        #expect(length == 7)
    }

    @Test func `a typed namespace supports putIfAbsent and subscripts`() throws {
        let view = cache.namespace("a/").typed([Int].self)
        #expect(try view["list"] == nil)
        #expect(try view.putIfAbsent([1], forKey: "list"))
        #expect(try !view.putIfAbsent([2], forKey: "list"))
        #expect(try view["list"] == [1])
        #expect(try cache["a/list"] == bytes("[1]"))
    }

    @Test func `each call uses the key with the prefix`() throws {
        let view = cache.namespace("a/")
        try cache.put("outside", forKey: "key")
        try view.put(["key": bytes("1"), "second": bytes("2")])
        #expect(try keys() == ["a/key", "a/second", "key"])
        let found = try view.get(forKeys: ["key", "second", "third"]).mapValues { $0.value }
        #expect(found == ["key": bytes("1"), "second": bytes("2")])
        #expect(try view.contains(forKey: "second") && !view.contains(forKey: "a/second"))
        #expect(try view.touch(forKey: "second") && !view.touch(forKey: "third"))
        #expect(try view.setExpiration(.seconds(5), forKey: "second"))
        #expect(try cache.entry(forKey: "a/second")?.expires != nil)
        let updated = try view.update(forKey: "key") { .value(($0?.value ?? Data()) + Data("!".utf8)) }
        #expect(updated == bytes("1!"))
        #expect(try view.remove(forKey: "key") && !view.remove(forKey: "key"))
        #expect(try view.remove(forKeys: ["second", "third"]) == 1)
        #expect(try keys() == ["key"])
    }

    @Test func `asynchronous calls use the key with the prefix`() async throws {
        let view = cache.namespace("a/")
        try await view.put(bytes("value"), forKey: "key")
        #expect(try await view.get(forKey: "key")?.value == bytes("value"))
        #expect(try await view.entry(forKey: "key")?.key == "a/key")
        let length = try await view.update(forKey: "key") { hit in
            .value(Data(String(hit?.value.count ?? 0).utf8))
        }
        #expect(length == bytes("5"))
        let found = try await cache.blocking { _ in try view.contains(forKey: "key") }
        #expect(found)
        #expect(try await view.get(forKeys: ["key"]).count == 1)
        #expect(try await view.remove(forKeys: ["key"]) == 1)
        #expect(try await view.remove(forKey: "key") == false)
    }

    @Test func `a namespace is listed, expired and removed separately`() throws {
        let view = cache.namespace("a/")
        let term = PutOptions(staleFor: .seconds(60))
        try view.put(["1": bytes("1"), "2": bytes("2")], options: term)
        try cache.put("outside", forKey: "a")
        #expect(try view.entries().compactMap { view.key(of: try $0.get()) }.sorted() == ["1", "2"])
        try view.expireAll()
        #expect(try view.get(forKey: "1") == nil)
        #expect(try view.get(forKey: "1", reading: ReadOptions(acceptsStale: true))?.isStale == true)
        try view.removeAll()
        #expect(try view.get(forKey: "1", reading: ReadOptions(acceptsStale: true)) == nil)
        #expect(try keys() == ["a"])
        try cache.namespace("").removeAll()
        #expect(try keys().isEmpty)
    }

    @Test func `a namespace's lock name includes the prefix`() throws {
        let lock = try cache.namespace("a/").lock("name", within: .zero)
        #expect(code { _ = try cache.lock("a/name", within: .zero) } == .busy)
        try cache.lock("name", within: .zero).unlock()
        lock.unlock()
    }

    @Test func `a slice of data is returned with indices from 0`() throws {
        let view = cache.namespace("a/")
        try view.put(bytes("12345").dropFirst(2), forKey: "key")
        #expect(try view.get(forKey: "key")?.value[0] == UInt8(ascii: "3"))
        let computed = view.value(forKey: "other") { Data("12345".utf8).dropFirst(2) }
        #expect(computed == bytes("345"))
        #expect(try view.get(forKey: "other")?.value[0] == UInt8(ascii: "3"))
    }

    // MARK: Options

    @Test func `a put without options uses those of the innermost view`() throws {
        let outer = cache.namespace("a/", options: PutOptions(expires: .seconds(10), tags: ["a"]))
        let inner = outer.namespace("b/", options: PutOptions(tags: ["b"]))
        let typed = outer.typed(String.self)
        func tags(_ key: String) throws -> [String]? { try cache.entry(forKey: key)?.tags }
        try outer.put(bytes("1"), forKey: "1")
        try inner.put(bytes("2"), forKey: "2")
        try typed.put("3", forKey: "3")
        try outer.put(bytes("4"), forKey: "4", options: PutOptions())
        try outer.put(["5": bytes("5")])
        #expect(try tags("a/1") == ["a"] && tags("a/b/2") == ["b"] && tags("a/3") == ["a"])
        #expect(try tags("a/4") == [] && tags("a/5") == ["a"])
        #expect(try cache.entry(forKey: "a/3")?.expires != nil)
        #expect(try cache.entry(forKey: "a/b/2")?.expires == nil)
    }

    @Test func `computed and updated values use the view's options unless others are given`() throws {
        let view = cache.namespace("a/", options: PutOptions(tags: ["a"]))
        func tags(_ key: String) throws -> [String]? { try cache.entry(forKey: key)?.tags }
        _ = view.value(forKey: "value") { Data() }
        _ = view.value(forKey: "own", options: PutOptions(tags: ["own"])) { Data() }
        _ = try view.hit(forKey: "hit") { _ in .value(Data()) }
        _ = try view.hit(forKey: "terms") { _ in .value(Data(), PutOptions(tags: ["terms"])) }
        try view.update(forKey: "update") { _ in .value(Data()) }
        _ = try view.values(forKeys: ["values"]) { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, Data()) })
        }
        #expect(try tags("a/value") == ["a"] && tags("a/own") == ["own"])
        #expect(try tags("a/hit") == ["a"] && tags("a/terms") == ["terms"])
        #expect(try tags("a/update") == ["a"] && tags("a/values") == ["a"])
    }

    // MARK: Computing

    @Test func `closures get keys without the prefix`() async throws {
        let view = cache.namespace("a/").typed(String.self)
        let hit = try await view.hit(forKey: "key") { .value($0.key) }
        #expect(hit?.value == "key")
        let asked = Locked<[[String]]>([])
        let values = try await view.values(forKeys: ["key", "other", "third"]) { keys in
            asked.withLock { $0.append(keys.sorted()) }
            return ["other": "computed"]
        }
        #expect(asked.withLock { $0 } == [["other", "third"]])
        #expect(values == ["key": "key", "other": "computed"])
        #expect(try await cache.get(forKey: "a/other")?.value == bytes("\"computed\""))
    }

    @Test func `a namespace and the cache share one computation of a key`() async throws {
        let (cache, view, gate) = (cache, cache.namespace("a/"), Gate())
        async let first = view.value(forKey: "key") { () async -> Data in
            await gate.pass()
            return Data("once".utf8)
        }
        try await eventually("it is computed") { cache.counters[.computation] == 1 }
        async let second = cache.value(forKey: "a/key") { Data("twice".utf8) }
        try await eventually("the other one waits") { cache.flights.inProgress.waiting == 1 }
        gate.open()
        let values = await [first, second]
        #expect(values == [bytes("once"), bytes("once")])
    }
}
