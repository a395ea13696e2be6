// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache

@Suite(.takesTurns) struct CloseTests {
    private let place: TemporaryDirectory
    private let cache: SharedCache

    init() throws {
        place = try TemporaryDirectory()
        cache = try SharedCache(at: place.path + "/cache")
        for index in 0..<10 {
            try cache.put(
                Data("value \(index)".utf8),
                forKey: "key \(index)",
                options: PutOptions(expires: .expired)
            )
        }
        try cache.put(Data("stays".utf8), forKey: "stays")
    }

    private var entries: Int { place.files(below: "cache/entries").count }

    @Test func `the last cache to close removes expired entries`() throws {
        let report = cache.close()
        #expect(report.wasLast && report.isComplete && report.failure == nil)
        #expect(report.collection?.removed[.expired]?.count == 10)
        #expect(entries == 1 && place.files(below: "cache/objects").count == 1)
    }

    @Test func `a cache that is not the last to close leaves expired entries`() throws {
        let other = try SharedCache(at: cache.path)
        let report = cache.close()
        #expect(!report.wasLast && report.isComplete && report.collection == nil)
        #expect(entries == 11)
        #expect(other.close().wasLast)
        #expect(entries == 1)
    }

    @Test func `a cache outside the session removes nothing and is not counted`() throws {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.janitor.joinsSession = false
        let other = try SharedCache(at: cache.path, configuration: configuration)
        let report = other.close()
        #expect(!report.wasLast && report.collection == nil && report.isComplete)
        #expect(cache.close().wasLast)
    }

    @Test func `a closed cache refuses calls, and closing it again does nothing`() throws {
        cache.close()
        #expect { try cache.get(forKey: "stays") } throws: { ($0 as? CacheError)?.code == .closed }
        #expect(cache.close() == CloseReport())
    }

    @Test func `an asynchronous close does the same`() async throws {
        let report = await cache.close()
        #expect(report.wasLast && entries == 1)
    }

    @Test func `a close without time removes nothing and reports itself incomplete`() throws {
        let report = cache.close(deadline: .zero)
        #expect(report.wasLast && !report.isComplete)
        #expect(report.collection?.isComplete == false && entries == 11)
        // The next close continues.
        #expect(try SharedCache(at: cache.path).close().isComplete)
        #expect(entries == 1)
    }

    @Test func `pending puts are written and accesses are recorded before the session ends`() throws {
        let store = try Store(at: cache.path)
        let steps = Locked<[String]>.Box([])
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        // The clock is read when accesses are recorded and for the sweep at the end.
        configuration.now = {
            // No other cache can be the last one while this one is in the session.
            let isAlone = (try? StoreSession.begin(in: store.directory)?.end()) ?? true
            steps.value.withLock { $0.append(isAlone ? "alone" : "in session") }
            return Date()
        }
        configuration.onEvent = {
            if case .collected = $0 { steps.value.withLock { $0.append("sweep") } }
        }
        let core = try CacheCore(path: cache.path, configuration: configuration)
        let writeBehind = WriteBehind(limits: .init(size: .bytes(100), count: 10)) { _ in
            waitUntil("calls are refused") { (try? core.checkOpen()) == nil }
            steps.value.withLock { $0.append("drain") }
        }
        cache.close()
        let presence = CacheRegistration(core, writeBehind)
        #expect(writeBehind.put(pendingWrite()))
        let report = presence.close(deadline: hangLimit)
        #expect(steps.value.withLock { $0 } == ["drain", "in session", "alone", "sweep"])
        #expect(report.wasLast && report.isComplete)
    }

    @Test func `a close reports pending puts that were not written in time`() throws {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        // Without a session there is no sweep, which the report would include, too.
        configuration.janitor.joinsSession = false
        let core = try CacheCore(path: cache.path, configuration: configuration)
        let gate = DispatchSemaphore(value: 0)
        let writeBehind = WriteBehind(limits: .init(size: .bytes(100), count: 10)) { _ in gate.wait() }
        #expect(writeBehind.put(pendingWrite()))
        let report = CacheRegistration(core, writeBehind).close(deadline: .milliseconds(20))
        #expect(!report.wasLast && !report.isComplete && report.failure == nil)
        gate.signal()
    }

    private func pendingWrite() -> PendingWrite {
        let data = Data("value".utf8)
        let draft = Record(content: Content(of: data.span), created: .now)
        return PendingWrite(data, forKey: "key", in: .callers, Digest(ofKey: "key"), draft: draft)
    }

    @Test func `a close leaves a running collection to the other process`() throws {
        let store = try Store(at: cache.path)
        let lock = try LockFile.acquire(
            StoreLayout.janitorLock,
            in: store.directory.locks,
            patience: .zero
        )
        let report = cache.close()
        #expect(report.wasLast && report.collection == nil && !report.isComplete && report.failure == nil)
        lock?.release()
    }
}
