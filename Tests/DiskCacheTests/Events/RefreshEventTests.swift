// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct RefreshEventTests {
    private struct Failed: Error {}

    @Test func `a failed background refresh is reported as an event`() throws {
        let failures = Locked<[String]>([])
        let fixture = try CacheFixture {
            $0.onEvent = { event in
                guard case .refreshFailed(let key, let reason) = event else { return }
                failures.withLock { $0.append("\(key): \(reason)") }
            }
        }
        try fixture.cache.put(
            "old",
            forKey: "key",
            options: PutOptions(expires: .seconds(10), staleFor: .seconds(100))
        )
        fixture.clock.advance(by: 11)
        let options = ReadOptions(staleWhileRevalidate: .seconds(100))
        let value = try fixture.cache.value(forKey: "key", reading: options) { () throws(Failed) in
            throw Failed()
        }
        #expect(value == Data("old".utf8))
        waitUntil("the event comes") { failures.withLock { !$0.isEmpty } }
        #expect(failures.withLock { $0 } == ["key: Failed()"])
    }
}
