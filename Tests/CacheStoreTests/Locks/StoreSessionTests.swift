// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct StoreSessionTests {
    private let fixture: StoreFixture

    init() throws {
        fixture = try StoreFixture()
    }

    @Test func `the last session to end reports so once`() throws {
        let first = try #require(try StoreSession.begin(in: fixture.store.directory))
        let second = try #require(try StoreSession.begin(in: fixture.store.directory))
        #expect(try !first.end())
        #expect(try second.end())
        #expect(try !second.end())
    }

    @Test func `a released session does not count`() throws {
        var lost = try StoreSession.begin(in: fixture.store.directory)
        let other = try #require(try StoreSession.begin(in: fixture.store.directory))
        #expect(lost != nil)
        lost = nil
        #expect(try other.end())
    }

    @Test func `at least one of several concurrently ending sessions is the last`() throws {
        for _ in 0..<300 {
            let sessions = try (0..<4).map { _ in
                try #require(try StoreSession.begin(in: fixture.store.directory))
            }
            let lasts = Atomic<Int>(0)
            DispatchQueue.concurrentPerform(iterations: sessions.count) { index in
                if (try? sessions[index].end()) ?? false { lasts.add(1, ordering: .relaxed) }
            }
            #expect(lasts.load(ordering: .relaxed) >= 1)
        }
    }

    @Test func `the last session blocks no new one, and a missing session file is created`() throws {
        try FileManager.default.removeItem(atPath: fixture.path + "/locks/sessions")
        let first = try #require(try StoreSession.begin(in: fixture.store.directory))
        #expect(try first.end())
        // Its descriptor is still open.
        let next = try #require(try StoreSession.begin(in: fixture.store.directory))
        #expect(try next.end())
        withExtendedLifetime(first) {}
    }
}
