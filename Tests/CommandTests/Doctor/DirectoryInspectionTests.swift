// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCache
@testable import DiskCacheCommand

/// The facts that `doctor` gathers about a directory.
@Suite(.takesTurns) struct DirectoryInspectionTests {
    private let place: TemporaryDirectory
    private let cache: SharedCache

    init() throws {
        place = try TemporaryDirectory()
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        cache = try SharedCache(at: place.path + "/cache", configuration: configuration)
        try cache.put("value", forKey: "key")
    }

    @Test func `a new cache is healthy, and its entries are sampled`() throws {
        let facts = try DirectoryInspection(of: cache)
        #expect(facts.isCurrent && facts.isWritable && facts.hasLocks == true)
        #expect(facts.owner == facts.user && facts.permissions == 0o700)
        #expect(facts.foreignFiles.isEmpty && facts.misplacedFiles.isEmpty)
        #expect(facts.sampledEntries == 1 && facts.entriesWithoutRecord == 0)
        #expect(facts.collector == nil && facts.sinceCollection == nil && !facts.wasInterrupted)
        #expect(facts.configuration == DirectoryConfiguration() && facts.configurationProblem == nil)
        #expect(max(facts.newestChange, try #require(facts.clockSkew)) < .seconds(2))
        #expect(facts.overhead >= (try cache.directory.statistics().overheadBytes))
    }

    @Test func `files of the wrong type are named, and do not affect the permissions`() throws {
        let path = place.path + "/cache"
        try FileManager.default.createDirectory(
            atPath: path + "/locks/name",
            withIntermediateDirectories: false
        )
        try FileManager.default.removeItem(atPath: path + "/tmp")
        try FileManager.default.createSymbolicLink(atPath: path + "/tmp", withDestinationPath: "/tmp")
        let facts = try DirectoryInspection(of: cache)
        #expect(facts.misplacedFiles == ["locks/name", "tmp"] && facts.permissions == 0o700)
    }

    @Test func `the collecting process is named only if it is visible`() throws {
        let store = try Store(at: cache.path)
        let lock = try LockFile.acquire(StoreLayout.janitorLock, in: store.directory.locks, patience: .zero)
        guard let lock else { throw CancellationError() }
        var record = SweepRecord(beginning: SweepRequest(), after: nil)
        record.write(to: lock.descriptor)
        let seen = try #require(try DirectoryInspection(of: cache).collector)
        #expect(seen.process == CurrentProcess.identifier && !seen.isStopped)
        // As if the collector ran in another PID namespace, as process 1.
        record.process = 1
        record.write(to: lock.descriptor)
        let unseen = try #require(try DirectoryInspection(of: cache).collector)
        #expect(unseen.process == nil && !unseen.isStopped)
        lock.release()
        let later = try DirectoryInspection(of: cache)
        #expect(later.collector == nil && later.wasInterrupted)
    }

    @Test func `a file that can't be examined is an error, not a missing file`() throws {
        // The cache is a minute old, so that an age of 0 can be told from a true one.
        let format = cache.path + "/format"
        try FileManager.default.setAttributes([.modificationDate: Date() - 60], ofItemAtPath: format)
        var place = 0
        while true {
            let calls = Locked(0)
            let failing = place
            let facts = try? SystemCall.withFaults { call in
                guard call == .status else { return nil }
                let number = calls.withLock { (count: inout Int) in
                    defer { count += 1 }; return count
                }
                return number == failing ? .error(.inputOutput) : nil
            } _: {
                try DirectoryInspection(of: cache)
            }
            if let facts { #expect(facts.hasControlFile && facts.age > .seconds(50), "call \(place) failed") }
            guard calls.withLock({ $0 }) > place else { break }
            place += 1
        }
        try #require(place > 10, "the calls were not seen")
    }
}
