// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

private struct Point: Codable, Equatable, Sendable {
    var x: Double
    var name: String
}

/// A codec that counts its decodings.
private final class CountingCodec: CacheCodec {
    struct Malformed: Error {}

    let decoded = Atomic<Int>(0)

    func encode(_ value: String) throws -> Data { Data(value.utf8) }

    func decode(_ data: Data) throws -> String {
        decoded.add(1, ordering: .relaxed)
        guard let text = String(data: data, encoding: .utf8) else { throw Malformed() }
        return text
    }

    func cost(of value: String, encodedSize: Int) -> Int { encodedSize * 10 }
}

/// A picture whose pixels can be restored.
private struct Picture: Codable, Equatable, DiscardableValue {
    var seed: Int
    var pixels: [Int]?

    func discarded() -> (value: Picture, cost: Int)? {
        pixels == nil ? nil : (Picture(seed: seed, pixels: nil), 8)
    }

    func restored() -> Picture { Picture(seed: seed, pixels: [seed]) }
}

/// A value that records which thread restored it.
private struct Witness: Codable, DiscardableValue {
    static let thread = Locked("")

    var isWhole = true

    func discarded() -> (value: Witness, cost: Int)? {
        isWhole ? (Witness(isWhole: false), 8) : nil
    }

    func restored() -> Witness {
        let name = (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? ""
        Self.thread.withLock { $0 = name.trimmingCharacters(in: .newlines) }
        return Witness()
    }
}

@Suite(.takesTurns) struct TypedViewTests {
    private func fixture() throws -> CacheFixture {
        try CacheFixture { $0.memory = CacheConfiguration.Memory() }
    }

    @Test func `a value survives a round trip through memory and disk`() throws {
        let fixture = try fixture()
        let point = Point(x: 0.1, name: "ö")
        let view = fixture.cache.typed(Point.self)
        try view.put(point, forKey: "key")
        #expect(try view.get(forKey: "key")?.value == point)
        #expect(try view.get(forKey: "key")?.source == .memory)
        let other = try SharedCache(at: fixture.cache.path).typed(Point.self)
        #expect(try other.get(forKey: "key")?.value == point)
        #expect(try other.get(forKey: "absent") == nil)
    }

    @Test func `a memory hit does not decode again`() throws {
        let fixture = try fixture()
        let codec = CountingCodec()
        try fixture.cache.put("text", forKey: "key")
        let view = fixture.cache.typed(by: codec)
        for _ in 0..<5 { #expect(try view.get(forKey: "key")?.value == "text") }
        #expect(codec.decoded.load(ordering: .relaxed) == 1)
    }

    @Test func `a decoded value has the cost that its codec returns`() throws {
        let fixture = try CacheFixture { $0.memory = CacheConfiguration.Memory(costLimit: .bytes(1000)) }
        let view = fixture.cache.typed(by: CountingCodec())
        try view.put("1234567", forKey: "key")
        #expect(fixture.cache.core.memory?.usage.cost == 70)
    }

    @Test func `an undecodable value is a miss, and a put replaces it`() throws {
        let fixture = try fixture()
        try fixture.cache.put("no JSON", forKey: "key")
        let view = fixture.cache.typed(Point.self)
        #expect(try view.get(forKey: "key") == nil)
        try view.put(Point(x: 1, name: "b"), forKey: "key")
        #expect(try view.get(forKey: "key")?.value == Point(x: 1, name: "b"))
    }

    @Test func `a value that cannot be encoded throws`() throws {
        let view = try fixture().cache.typed(Point.self)
        #expect(code { try view.put(Point(x: .infinity, name: ""), forKey: "key") } == .encoding)
    }

    @Test func `equal values are stored once`() throws {
        let fixture = try fixture()
        let view = fixture.cache.typed([String: Int].self)
        let value = Dictionary(uniqueKeysWithValues: (0..<50).map { ("k\($0)", $0) })
        try view.put(value, forKey: "a")
        try view.put(Dictionary(uniqueKeysWithValues: value.reversed().map { ($0, $1) }), forKey: "b")
        #expect(try fixture.cache.directory.statistics().objects == 1)
    }

    @Test func `views and bytes of one key see each other's puts`() throws {
        let fixture = try fixture()
        let json = fixture.cache.typed(Point.self)
        let text = fixture.cache.typed(by: CountingCodec())
        try json.put(Point(x: 1, name: "a"), forKey: "key")
        #expect(try text.get(forKey: "key")?.value == #"{"name":"a","x":1}"#)
        try text.put(#"{"name":"b","x":2}"#, forKey: "key")
        #expect(try json.get(forKey: "key")?.value == Point(x: 2, name: "b"))
        try fixture.cache.put("broken", forKey: "key")
        #expect(try json.get(forKey: "key") == nil)
        #expect(try text.get(forKey: "key")?.value == "broken")
    }

    @Test func `values discard their restorable parts before any value is evicted`() throws {
        let fixture = try fixture()
        let view = fixture.cache.typed(Picture.self)
        try view.put(Picture(seed: 7, pixels: [7]), forKey: "key")
        fixture.cache.core.memory?.shrink(to: 0.9)
        #expect(fixture.cache.core.memory?.usage.count == 1)
        #expect(fixture.cache.core.memory?.usage.cost == 8)
        let hit = try view.get(forKey: "key")
        #expect(hit?.source == .memory)
        #expect(hit?.value == Picture(seed: 7, pixels: [7]))
        #expect(try #require(fixture.cache.core.memory).usage.cost > 8)
    }

    @Test(arguments: [false, true])
    func `values are evicted whole if discarding parts is disabled`(discardsParts: Bool) throws {
        let fixture = try CacheFixture {
            $0.memory = CacheConfiguration.Memory()
            $0.memory.discardsParts = discardsParts
        }
        let view = fixture.cache.typed(Picture.self)
        try view.put(Picture(seed: 7, pixels: [7]), forKey: "key")
        fixture.cache.core.relieve { .some }
        #expect(fixture.cache.memory.count == (discardsParts ? 1 : 0))
    }

    @Test(arguments: [Duration.zero, .seconds(3600)])
    func `a frozen tier restores a discarded value and keeps it`(granularity: Duration) throws {
        let fixture = try CacheFixture {
            $0.memory = CacheConfiguration.Memory()
            $0.accessGranularity = granularity
        }
        let view = fixture.cache.typed(Picture.self)
        try view.put(Picture(seed: 7, pixels: [7]), forKey: "key")
        fixture.cache.core.memory?.shrink(to: 0.9)
        fixture.cache.memory.isFrozen = true
        for _ in 0..<2 {
            let hit = try view.get(forKey: "key")
            #expect(hit?.source == .memory && hit?.value.pixels == [7])
        }
        #expect(fixture.cache.memory.cost == 8 && fixture.cache.memory.count == 1)
    }

    @Test func `an asynchronous get restores a discarded value on a thread of the library`() async throws {
        let fixture = try fixture()
        let view = fixture.cache.typed(Witness.self)
        try await view.put(Witness(), forKey: "key")
        fixture.cache.core.memory?.shrink(to: 0.9)
        let hit = try await view.get(forKey: "key")
        #expect(hit?.source == .memory && hit?.value.isWhole == true)
        #expect(Witness.thread.withLock { $0 } == "diskcache-read")
    }

    @Test func `asynchronous calls work`() async throws {
        let fixture = try fixture()
        let view = fixture.cache.typed(Point.self)
        try await view.put(Point(x: 3, name: "c"), forKey: "key")
        #expect(try await view.get(forKey: "key")?.value == Point(x: 3, name: "c"))
        #expect(try await view.remove(forKey: "key"))
        #expect(try await view.get(forKey: "key") == nil)
    }

    @Test func `a value is computed once, kept decoded, and recomputed if it cannot be decoded`()
        async throws
    {
        let fixture = try fixture()
        let view = fixture.cache.typed(Point.self)
        let count = Atomic<Int>(0)
        let compute = { @Sendable () async -> Point in
            Point(x: Double(count.add(1, ordering: .relaxed).newValue), name: "computed")
        }
        for _ in 0..<3 { #expect(await view.value(forKey: "key", orCompute: compute).x == 1) }
        #expect(try await view.get(forKey: "key")?.source == .memory)
        try await fixture.cache.put("from another version", forKey: "key")
        for _ in 0..<3 { #expect(await view.value(forKey: "key", orCompute: compute).x == 2) }
        let other = try await SharedCache.open(at: fixture.cache.path).typed(Point.self)
        #expect(try await other.get(forKey: "key")?.value.x == 2)
    }

    @Test func `a call throws only the computation's error and returns unencodable values`() throws {
        struct Failed: Error, Equatable {}
        let fixture = try fixture()
        let view = fixture.cache.typed(Point.self)
        #expect(throws: Failed.self) {
            try view.value(forKey: "key") { () throws(Failed) in throw Failed() }
        }
        let infinite = view.value(forKey: "key") { Point(x: .infinity, name: "") }
        #expect(infinite.x == .infinity)
        #expect(try view.get(forKey: "key") == nil)
    }

    @Test func `a computed value is on disk when it is returned, even with write-behind`() throws {
        let fixture = try CacheFixture {
            $0.memory = CacheConfiguration.Memory()
            $0.writing = .behind
        }
        let view = fixture.cache.typed(Point.self)
        for round in 0..<50 {
            let key = "key \(round)"
            _ = view.value(forKey: key) { Point(x: 1, name: "") }
            let other = try SharedCache(at: fixture.cache.path, configuration: fixture.cache.configuration)
            #expect(try other.typed(Point.self).get(forKey: key)?.value.x == 1)
        }
    }
}
