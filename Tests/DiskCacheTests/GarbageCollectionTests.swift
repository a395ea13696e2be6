// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct GarbageCollectionTests {
    @Test func `a sparing one works in slices, a full one to its end`() throws {
        var options = CollectionOptions()
        #expect(try options.request(CacheLimits()).pace.slice == nil)
        options.pace = .sparing
        options.timeLimit = .seconds(1)
        let pace = try options.request(CacheLimits()).pace
        #expect(pace.slice == .milliseconds(4) && pace.rest == .milliseconds(16) && pace.deadline != nil)
        #expect(pace.pause(.zero))
    }

    @Test func `one that is called off is incomplete`() throws {
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        try cache.put("value", forKey: "key", options: PutOptions(expires: .expired))
        var options = CollectionOptions()
        options.isCalledOff = { true }
        let report = try cache.directory.collect(options)
        #expect(!report.isComplete && report.removed.isEmpty)
    }

    @Test(arguments: [true, false])
    func `each key that goes is told with the reason, in a dry run each that would`(isDryRun: Bool) throws {
        let fixture = try CacheFixture { $0.keyNames = .stored }
        let cache = fixture.cache
        for index in 0..<5 {
            let options = PutOptions(expires: index < 2 ? .seconds(10) : .never)
            try cache.put("value \(index)", forKey: "key \(index)", options: options)
            fixture.clock.advance(by: 1)
        }
        fixture.clock.advance(by: 10)
        let told = Locked<[LoggedRemoval]>([])
        var options = CollectionOptions()
        options.isDryRun = isDryRun
        options.maximumEntries = 2
        options.onRemoval = { removal in told.withLock { $0.append(removal) } }
        let report = try cache.directory.collect(options)
        let removals = told.withLock { $0 }
        let words = removals.map { "\($0.key ?? "-") \($0.cause.word)" }.sorted()
        #expect(words == ["key 0 expired", "key 1 expired", "key 2 entries"])
        #expect(report.removed[.expired]?.count == 2 && report.removed[.entries]?.count == 1)
        #expect(removals.allSatisfy { $0.process == ProcessInfo.processInfo.processIdentifier })
        #expect(removals.allSatisfy { $0.keyDigest == Digest(ofKey: $0.key ?? "") })
        #expect(try cache.contains(forKey: "key 2") == isDryRun)
    }

    @Test func `of a key that is not stored its digest is told`() throws {
        let fixture = try CacheFixture { $0.keyNames = .hashedOnly }
        try fixture.cache.put("value", forKey: "key", options: PutOptions(expires: .expired))
        let told = Locked<[LoggedRemoval]>([])
        var options = CollectionOptions()
        options.onRemoval = { removal in told.withLock { $0.append(removal) } }
        try fixture.cache.directory.collect(options)
        let removals = told.withLock { $0 }
        #expect(removals.count == 1)
        #expect(removals.first?.key == nil && removals.first?.keyDigest == Digest(ofKey: "key"))
    }

    @Test func `who may not wait is told who is collecting`() throws {
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        try cache.directory.collect { progress in
            guard progress.phase == .waiting else { return }
            let error = #expect(throws: CacheError.self) {
                var options = CollectionOptions()
                options.patience = .zero
                try cache.directory.collect(options)
            }
            let holder = "process \(ProcessInfo.processInfo.processIdentifier) has been collecting for "
            #expect(error?.code == .busy && error?.message.contains(holder) == true)
        }
    }
}
