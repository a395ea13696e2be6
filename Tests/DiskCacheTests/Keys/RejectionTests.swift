// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

/// A codec that accepts only numbers and can run a closure at its third decoding.
private final class PickyCodec: CacheCodec {
    struct Rejected: Error {}

    private let calls = Atomic<Int>(0)
    private let atThird: @Sendable () -> Void

    init(atThird: @escaping @Sendable () -> Void = {}) {
        self.atThird = atThird
    }

    func encode(_ value: Int) -> Data { Data(String(value).utf8) }

    func decode(_ data: Data) throws -> Int {
        if calls.add(1, ordering: .relaxed).newValue == 3 { atThird() }
        guard let number = Int(String(decoding: data, as: UTF8.self)) else { throw Rejected() }
        return number
    }
}

/// A value that the codec rejects, as if another version of the program had written it.
@Suite(.takesTurns) struct RejectionTests {
    private let fixture: CacheFixture
    private var cache: SharedCache { fixture.cache }

    init() throws {
        fixture = try CacheFixture()
        try fixture.cache.put("no number", forKey: "key")
    }

    @Test func `a rejected value is a miss and stays stored`() throws {
        let view = cache.typed(by: PickyCodec())
        #expect(try view.get(forKey: "key") == nil)
        #expect(try view.contains(forKey: "key"))
        #expect(try fixture.text("key") == "no number")
    }

    @Test func `a rejected value is removed by a computation even if that fails`() throws {
        struct Failed: Error {}
        let view = cache.typed(by: PickyCodec())
        #expect(throws: Failed.self) {
            try view.value(forKey: "key") { () throws(Failed) in throw Failed() }
        }
        #expect(try !cache.contains(forKey: "key"))
        #expect(view.value(forKey: "key") { 7 } == 7)
        #expect(try fixture.text("key") == "7")
    }

    @Test func `the closure does not get a rejected value`() throws {
        let reason = Locked<String?>(nil)
        let hit = try cache.typed(by: PickyCodec()).hit(forKey: "key") { computation in
            reason.withLock { $0 = computation.previous == nil ? computation.reason.rawValue : nil }
            return .value(1)
        }
        #expect(hit?.value == 1)
        #expect(reason.withLock { $0 } == "absent")
    }

    @Test func `a value stored meanwhile in place of a rejected one stays`() throws {
        let cache = cache
        // The decodings are those of the lookup, of the lookup under the lock, and of the check before the removal.
        let view = cache.typed(
            by: PickyCodec { _ = try? cache.put(Data("12".utf8), forKey: "key") }
        )
        let hit = try view.hit(forKey: "key") { _ in .unkept(1) }
        #expect(hit?.value == 1)
        #expect(try fixture.text("key") == "12")
    }

    @Test func `an update treats a rejected value as a miss and replaces it`() throws {
        let view = cache.typed(by: PickyCodec())
        let first = try view.update(forKey: "key") { .value(($0?.value ?? 0) + 1) }
        let second = try view.update(forKey: "key") { .value(($0?.value ?? 0) + 1) }
        #expect(first == 1 && second == 2)
        #expect(try fixture.text("key") == "2")
    }
}
