// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

private struct Chart: Codable, Sendable {
    var width: Int
    var colours: [String: String] = [:]
}

private final class Calls: Sendable {
    private let number = Atomic<Int>(0)

    func note() { number.add(1, ordering: .relaxed) }

    var count: Int { number.load(ordering: .relaxed) }
}

@Suite(.takesTurns) struct MemoizedTests {
    private let fixture: CacheFixture
    private let calls = Calls()
    private var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try CacheFixture()
    }

    @Test func `each set of parameters is computed once`() async throws {
        let draw = cache.typed(String.self).memoized("draw", of: Chart.self) { [calls] chart in
            calls.note()
            return "\(chart.width)"
        }
        for _ in 0..<3 {
            #expect(try await draw(Chart(width: 1)) == "1")
            #expect(try await draw(Chart(width: 2)) == "2")
        }
        #expect(calls.count == 2)
    }

    @Test func `another process finds the result by equal parameters in any order`()
        async throws
    {
        let names = (0..<50).map { "colour \($0)" }
        let colours = Dictionary(uniqueKeysWithValues: names.map { ($0, "red") })
        let reversed = Dictionary(uniqueKeysWithValues: names.reversed().map { ($0, "red") })
        let draw = cache.memoized("draw", of: Chart.self) { _ in Data("first".utf8) }
        #expect(try await draw(Chart(width: 1, colours: colours)) == Data("first".utf8))
        let other = try await SharedCache.open(at: cache.path, configuration: cache.configuration)
        let again = other.memoized("draw", of: Chart.self) { _ in Data("second".utf8) }
        #expect(try await again(Chart(width: 1, colours: reversed)) == Data("first".utf8))
        #expect(try await again(Chart(width: 2, colours: reversed)) == Data("second".utf8))
    }

    @Test func `functions have separate results, which can be removed by name`() async throws {
        let one = cache.namespace("a/").memoized("one", of: Int.self) { _ in Data("one".utf8) }
        let two = cache.namespace("a/").memoized("two", of: Int.self) { _ in Data("two".utf8) }
        #expect(try await one(1) == Data("one".utf8))
        #expect(try await two(1) == Data("two".utf8))
        let cache = cache
        let keys = try await cache.blocking { try $0.entries().map { try $0.get().key } }
        #expect(keys.allSatisfy { $0?.hasPrefix("a/one/") == true || $0?.hasPrefix("a/two/") == true })
        #expect(keys.count == 2)
        try await cache.blocking { try $0.namespace("a/one/").removeAll() }
        #expect(try await cache.blocking { try $0.entries().map { try $0.get().key }.count } == 1)
    }

    @Test func `results are stored with the given options`() async throws {
        let square = cache.memoized("square", of: Int.self, options: PutOptions(expires: .seconds(1))) {
            [calls] _ in
            calls.note()
            return Data()
        }
        _ = try await square(2)
        fixture.clock.advance(by: 2)
        _ = try await square(2)
        #expect(calls.count == 2)
    }

    @Test func `the function's errors are rethrown, and unencodable parameters throw`() async throws {
        struct Failed: Error {}
        let failing = cache.memoized("failing", of: Double.self) { _ in throw Failed() }
        await #expect(throws: Failed.self) { try await failing(1) }
        let error = await #expect(throws: CacheError.self) { try await failing(.infinity) }
        #expect(error?.code == .encoding)
    }
}
