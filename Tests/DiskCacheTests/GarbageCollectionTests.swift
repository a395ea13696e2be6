// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct GarbageCollectionTests {
    @Test func `a sparing collection works in slices, a full one runs through`() throws {
        var options = CollectionOptions()
        #expect(try options.request(CacheLimits()).pace.slice == nil)
        options.pace = .sparing
        options.timeLimit = .seconds(1)
        let pace = try options.request(CacheLimits()).pace
        #expect(pace.slice == .milliseconds(4) && pace.rest == .milliseconds(16) && pace.deadline != nil)
        #expect(pace.pause(.zero))
    }

    @Test(arguments: [CacheConfiguration.Memory.none, CacheConfiguration().memory])
    func `a value in use is not removed as idle, however short the idle time is`(
        memory: CacheConfiguration.Memory
    ) throws {
        let fixture = try CacheFixture {
            $0.accessGranularity = CacheConfiguration().accessGranularity
            $0.memory = memory
        }
        let cache = fixture.cache
        try cache.directory.updateLimits { $0.maximumIdleTime = .seconds(16) }
        for key in ["used", "idle"] { try cache.put("value", forKey: key) }
        for _ in 0..<8 {
            fixture.clock.advance(by: 4)
            #expect(try fixture.text("used") == "value")
            cache.core.flushAccesses()
        }
        let report = try cache.directory.collect()
        #expect(report.removed[.idle]?.count == 1)
        #expect(try fixture.text("used") == "value")
        #expect(try cache.directory.statistics().entries == 1)
    }

    @Test func `a leftover that can't be deleted is reported, and the rest is collected`() throws {
        let fixture = try CacheFixture()
        let path = fixture.directory.path + "/cache/tmp/put-leftover"
        makeFile(path)
        try fixture.cache.put("value", forKey: "key", options: PutOptions(expires: .expired))
        for error in [Errno.notPermitted, .inputOutput, .busy] {
            let isFirst = Locked(true)
            let report = try SystemCall.withFaults({ call in
                guard call == .unlink, isFirst.withLock({ exchange(&$0, with: false) }) else { return nil }
                return .error(error)
            }) {
                try fixture.cache.directory.collect()
            }
            #expect(report.unreadable == ["tmp/put-leftover"] && report.isComplete, "\(error)")
        }
        #expect(try fixture.cache.directory.statistics().expiredEntries == 0)
        #expect(try fixture.cache.directory.collect().unreadable.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test(arguments: [CacheConfiguration.MetadataForm.automatic, .sidecar])
    func `the metadata of removed keys is counted until it is deleted`(form: CacheConfiguration.MetadataForm)
        throws
    {
        let fixture = try CacheFixture { $0.metadataForm = form }
        let directory = fixture.cache.directory
        // The keys are long enough for the metadata to take a block on every file system.
        for number in 0..<5 {
            try fixture.cache.put("value", forKey: String(repeating: "k", count: 900) + "\(number)")
        }
        let before = try directory.statistics()
        try fixture.cache.removeAll(.prefix("k"))
        let after = try directory.statistics()
        #expect(after.entries == 0 && before.entryBytes > 0 && after.entryBytes == before.entryBytes)
        try directory.collect()
        #expect(try directory.statistics().entryBytes == 0)
    }

    @Test func `a collection that waits for another one ends at its time limit`() throws {
        let fixture = try CacheFixture()
        let directory = fixture.cache.directory
        let thrown = Locked<CacheError.Code?>.Box(nil)
        let span = try shortestTime(below: .milliseconds(400)) {
            thrown.value.withLock { $0 = nil }
            var options = CollectionOptions()
            // Called by the first collection, for which the second one waits.
            options.isCancelled = {
                guard thrown.value.withLock({ $0 == nil }) else { return false }
                var second = CollectionOptions()
                second.timeLimit = .milliseconds(10)
                let code = code { [second] in _ = try directory.collect(second) }
                thrown.value.withLock { $0 = code }
                return false
            }
            try directory.collect(options)
        }
        #expect(span < .milliseconds(400) && thrown.value.withLock { $0 } == .busy)
    }

    @Test func `unreadable metadata is counted, and the other keys are removed`() throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        for number in 0..<3 { try cache.put("value", forKey: "key \(number)") }
        func failingOnce<Result>(_ body: () throws -> Result) throws -> Result {
            let isFirst = Locked(true)
            return try SystemCall.withFaults({ call in
                guard call == .getAttribute, isFirst.withLock({ exchange(&$0, with: false) }) else {
                    return nil
                }
                return .error(.inputOutput)
            }) { try body() }
        }
        let statistics = try failingOnce { try cache.directory.statistics() }
        #expect(statistics.entries == 2 && statistics.unreadableEntries == 1)
        #expect(throws: CacheError.self) { try failingOnce { try cache.expireAll(.glob("key *")) } }
        #expect(try cache.directory.statistics().expiredEntries == 2)
        #expect(throws: CacheError.self) { try failingOnce { try cache.removeAll(.glob("key *")) } }
        #expect(try cache.directory.statistics().entries == 1)
    }

    @Test func `a collection that is called off is incomplete`() throws {
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        try cache.put("value", forKey: "key", options: PutOptions(expires: .expired))
        var options = CollectionOptions()
        options.isCancelled = { true }
        let report = try cache.directory.collect(options)
        #expect(!report.isComplete && report.removed.isEmpty)
    }

    @Test(arguments: [true, false])
    func `each removal is reported with its cause, also in a dry run`(isDryRun: Bool) throws {
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

    @Test func `the event log counts with its maximum size, because it grows between collections`() throws {
        let fixture = try CacheFixture()
        let (cache, store) = (fixture.cache, fixture.cache.core.store)
        _ = try cache.directory.collect()
        let before = store.overhead
        try cache.directory.updateLimits { $0.eventLogSize = .mebibytes(4) }
        #expect(store.overhead - before == 4 << 20)
        for _ in 0..<2 {
            _ = try cache.directory.collect()
            #expect(store.overhead - before == 4 << 20)
            try cache.put("v", forKey: "k")
            try cache.remove(forKey: "k")
            #expect(fixture.directory.files(below: "cache").contains("events"))
        }
        // Its space counts once.
        try cache.directory.updateLimits { $0.maximumSize = ByteCount(store.overhead + 4096) }
        try cache.directory.updateLimits {
            $0.maximumSize = nil
            $0.eventLogSize = nil
        }
        // The files of the log stay on disk, and count until they are deleted.
        let file = fixture.directory.path + "/cache/events"
        try Data(repeating: 10, count: 1 << 20).write(to: URL(fileURLWithPath: file))
        let size = try FileStatus.of(file).allocatedSize
        try cache.directory.updateLimits { $0.eventLogSize = .mebibytes(4) }
        #expect(store.overhead - before == 4 << 20)
        for log in [nil, ByteCount.kibibytes(64), .mebibytes(4), nil] {
            try cache.directory.updateLimits { $0.eventLogSize = log }
            let space = max(size, log?.bytes ?? 0)
            #expect(store.overhead - before == space)
            _ = try cache.directory.collect()
            #expect(store.overhead - before == space)
        }
    }

    @Test func `the digest is reported if the key is not stored`() throws {
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

    @Test func `a collection without patience throws busy and names the collecting process`() throws {
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
