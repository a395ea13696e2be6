// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) final class RequestLocksTests {
    let fixture: StoreFixture
    let (key, otherKey) = (Digest(ofKey: "key"), Digest(ofKey: "other"))

    init() throws {
        fixture = try StoreFixture()
    }

    var file: String { fixture.path + "/locks/requests" }

    /// Returns the locks as another process has them.
    func others() -> RequestLocks { RequestLocks(in: fixture.store.directory) }

    @Test func `a key's lock is exclusive, and the locks of other keys stay free`() {
        let (mine, theirs) = (others(), others())
        #expect(mine.attempt(key))
        #expect(!theirs.attempt(key), "two hold it")
        #expect(theirs.attempt(otherKey))
        #expect(!mine.attempt(otherKey))
        mine.release(key)
        #expect(theirs.attempt(key))
        #expect(!mine.attempt(key))
    }

    @Test func `the locks of a holder are free once it is gone`() {
        let mine = others()
        do {
            let theirs = others()
            #expect(theirs.attempt(key))
            #expect(!mine.attempt(key))
        }
        #expect(mine.attempt(key))
    }

    @Test func `if locks are unavailable, every attempt succeeds`() throws {
        try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
        let (mine, theirs) = (others(), others())
        #expect(mine.attempt(key) && theirs.attempt(key))
        mine.release(key)
        let refused = others()
        SystemCall.withFaults({ $0 == .lock ? .error(.init(rawValue: ENOLCK)) : nil }) {
            #expect(refused.attempt(key))
        }
    }

    @Test func `a lock and its release take one system call each`() {
        let locks = others()
        #expect(locks.attempt(key))
        locks.release(key)
        let calls = Locked<[SystemCall]>.Box([])
        SystemCall.withFaults({ call in
            calls.value.withLock { $0.append(call) }
            return nil
        }) {
            #expect(locks.attempt(key))
            locks.release(key)
        }
        #expect(calls.value.withLock { $0 } == [.lock, .lock])
    }

    @Test func `a collection keeps the file`() throws {
        let mine = others()
        #expect(mine.attempt(key))
        mine.release(key)
        _ = try fixture.sweep()
        #expect(FileManager.default.fileExists(atPath: file))
    }
}
