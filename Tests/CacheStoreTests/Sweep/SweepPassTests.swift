// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Sweeps of a directory with all kinds of files, and of one with more evictions than candidates are allowed.
@Suite(.takesTurns) struct SweepPassTests {
    private let fixture: StoreFixture
    private let begin = Timestamp.now - .seconds(24 * 3600)

    init() throws {
        fixture = try StoreFixture()
    }

    /// Stores a value that was written and last used `age` seconds ago.
    private func put(_ value: String, _ key: String, age: Int, expires: Timestamp? = nil) throws {
        var record = fixture.record(value, created: .now - .seconds(age))
        record.expires = expires
        try fixture.store.put(Array(value.utf8).span, for: Digest(ofKey: key), record)
    }

    /// Makes files to remove for each reason except free space, and values of several sizes that keys share.
    private func makeEverything() throws {
        let text = { (index: Int) in "value \(index)" + String(repeating: "x", count: index % 5 * 3000) }
        for index in 0..<60 { try put(text(index / 2), "key \(index)", age: 1000 - index) }
        for index in 0..<5 { try put(text(index), "expired \(index)", age: 1, expires: .now) }
        for index in 0..<4 { try put("old \(index)", "old \(index)", age: 5000) }
        for index in 0..<3 {
            try put("idle \(index)", "idle \(index)", age: 3000)
            try put("lost \(index)", "lost \(index)", age: 1500)
            try FileManager.default.removeItem(atPath: fixture.objectPath("lost \(index)"))
        }
        // An entry that is too old also lacks its object.
        try put("lost and old", "lost and old", age: 5000)
        try FileManager.default.removeItem(atPath: fixture.objectPath("lost and old"))
        try put("replaced", "key 59", age: 1)
        try put(text(29), "key 59", age: 941)
        try put("broken", "broken", age: 1)
        try fixture.changeRecord(of: "broken") { $0 = [1, 2, 3] }
        makeFile(fixture.path + "/tmp/put-dead", String(repeating: "x", count: 5000))
        makeFile(fixture.path + "/locks/flight-" + Digest(ofKey: "dead").description)
    }

    private func limits(_ request: inout SweepRequest, overhead: Int64) {
        request.limits.maximumAge = .seconds(4000)
        request.limits.maximumIdleTime = .seconds(2000)
        request.limits.maximumEntries = 40
        request.limits.maximumSize = ByteCount(overhead + 100_000)
    }

    @Test(arguments: [SweepCandidates.most, 7])
    func `a dry run reports exactly the removals of the next run`(candidates: Int) throws {
        try makeEverything()
        try fixture.sweep { $0.expiredOnly = true }
        let overhead = try #require(fixture.store.control.overhead)
        for index in 0..<5 { try put("expired \(index)", "expired \(index)", age: 1, expires: .now) }
        makeFile(fixture.path + "/tmp/put-dead", String(repeating: "x", count: 5000))
        let change = { (request: inout SweepRequest) in
            limits(&request, overhead: overhead)
            request.candidateLimit = candidates
        }
        let told = Locked<[Bool: [String]]>.Box([:])
        let tell = { (isDryRun: Bool, request: inout SweepRequest) in
            request.onRemoval = { removal in
                let line = "\(removal.keyDigest) \(removal.cause.word)"
                told.value.withLock { $0[isDryRun, default: []].append(line) }
            }
        }
        let rehearsal = try fixture.sweep {
            change(&$0)
            tell(true, &$0)
            $0.isDryRun = true
        }
        let report = try fixture.sweep {
            change(&$0)
            tell(false, &$0)
        }
        let lines = told.value.withLock { $0.mapValues { $0.sorted() } }
        let rehearsed = try #require(lines[true])
        #expect(rehearsed == lines[false])
        #expect(Set(rehearsed).count == rehearsed.count, "each is told once")
        #expect(report.removed == rehearsal.removed)
        #expect(report.entries == rehearsal.entries && report.objects == rehearsal.objects)
        #expect(report.unrecognised == rehearsal.unrecognised && report.spared == rehearsal.spared)
        let reasons = Set(RemovalReason.allCases).subtracting([.freeSpace, .cleared])
        #expect(Set(report.removed.keys) == reasons)
        #expect(report.removed[.expired]?.count == 5 && report.removed[.dangling]?.count == 3)
        #expect(report.removed[.age]?.count == 5 && report.removed[.idle]?.count == 3)
        #expect(report.removed[.entries]?.count == 20 && report.entries.count < 40)
        let usage = try #require(fixture.store.control.usage)
        #expect(usage.entries == report.entries.count)
        #expect(usage.bytes == report.entries.bytes + report.objects.bytes)
        #expect(report.entries.bytes + report.objects.bytes <= 100_000)
        #expect(try fixture.sweep(change).removed.isEmpty, "one does it all")
    }

    @Test(arguments: [false, true])
    func `evictions beyond the candidate limit take several passes, in the same order`(isDryRun: Bool) throws
    {
        for index in 0..<60 { try put("value \(index / 2)", "key \(index)", age: 1000 - index) }
        let report = try fixture.sweep {
            $0.limits.maximumEntries = 15
            $0.candidateLimit = 4
            $0.isDryRun = isDryRun
        }
        #expect(report.removed.count == 1 && report.removed[.entries]?.count == 45)
        #expect(report.entries.count == 15 && report.objects.count == 8 && report.isComplete)
        let bytes = try #require(report.removed[.entries]).bytes
        #expect(bytes == 22 * 4096)
        guard !isDryRun else { return }
        let left = (0..<60).filter { FileManager.default.fileExists(atPath: fixture.entryPath("key \($0)")) }
        #expect(left == Array(45..<60))
        #expect(fixture.objects.count == 8)
        let horizon = try #require(report.evictionAge)
        #expect(horizon > .seconds(950) && horizon < .seconds(1500))
    }

    @Test func `there is no further pass if all candidates are in use`() throws {
        for index in 0..<30 { try put("value \(index)", "key \(index)", age: 1000 - index) }
        let passes = Locked<Int>.Box(0)
        var request = SweepRequest()
        request.limits.maximumEntries = 5
        request.candidateLimit = 4
        request.progress = { [fixture] progress in
            guard progress.phase == .deleting, progress.done == 0 else { return }
            let count = passes.value.withLock { passes in
                passes += 1
                return passes
            }
            if count > 3 { return }
            for index in 0..<30 { _ = try? fixture.get("key \(index)", now: .now + .seconds(count)) }
        }
        let report = try Sweep.run(request, on: fixture.store, now: .now)
        #expect(passes.value.withLock { $0 } == 1)
        #expect((4...5).contains(report.spared) && report.removed.isEmpty && report.isComplete)
    }

    @Test func `the size limit applies to the whole directory as du counts it`() throws {
        for index in 0..<300 { try put("value \(index)", "key \(index)", age: 1000 - index) }
        let before = try fixture.sweep()
        // Shards that do not exist yet are counted as if they did.
        let unmade = try fixture.store.overhead + before.objects.bytes - diskUsage()
        #expect(unmade > 0)
        let size = try diskUsage() + unmade
        try fixture.sweep { $0.limits.maximumSize = ByteCount(size - 400_000) }
        #expect(try abs(diskUsage() + unmade - (size - 400_000)) < 30_000)
        #expect(try diskUsage() <= size - 400_000 + 8192)
    }

    /// Returns the size in bytes that du(1) reports.
    private func diskUsage() throws -> Int64 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/du")
        process.arguments = ["-s", "-B1", fixture.path]
        let pipe = Foundation.Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return try #require(Int64(String(decoding: data, as: UTF8.self).prefix { $0.isNumber }))
    }

    @Test func `entries are evicted for free space only while too little is free`() throws {
        for index in 0..<20 { try put("value \(index)", "key \(index)", age: 1000 - index) }
        // Even the removal of all entries would not suffice.
        let rehearsal = try fixture.sweep {
            $0.limits.minimumFree = .percent(100)
            $0.isDryRun = true
        }
        #expect(rehearsal.removed[.freeSpace]?.count == 20)
        #expect(try fixture.sweep { $0.limits.minimumFree = .bytes(.bytes(0)) }.removed.isEmpty)
        #expect(fixture.entries.count == 20)
    }

    @Test func `a full sweep resets the count of values replaced before it`() throws {
        for _ in 0..<5 { fixture.store.control.noteReplacement(bytes: 4096) }
        try fixture.sweep { $0.expiredOnly = true }
        #expect(fixture.store.control.replacedEntries == 5)
        try fixture.sweep { $0.isDryRun = true }
        #expect(fixture.store.control.replacedEntries == 5)
        let isNoted = FailureCount()
        var request = SweepRequest()
        request.progress = { progress in
            guard progress.phase == .scanning, isNoted.all.isEmpty else { return }
            isNoted.add("yes")
            for _ in 0..<2 { fixture.store.control.noteReplacement(bytes: 4096) }
        }
        _ = try Sweep.run(request, on: fixture.store, now: .now)
        #expect(fixture.store.control.replacedEntries == (isNoted.all.isEmpty ? 0 : 2))
        #expect(fixture.store.control.replacedBytes == (isNoted.all.isEmpty ? 0 : 8192))
        try put("value", "key", age: 1)
        try fixture.sweep()
        #expect(fixture.store.control.replacedEntries == 0)
    }

    @Test func `files that grow with use count as overhead`() throws {
        let fixture = try StoreFixture()
        try fixture.sweep()
        let before = try #require(fixture.store.control.overhead)
        let files = [
            "outbox": 300_000, "outbox.1": 250_000, "events": 200_000, "events.1": 150_000, "rules": 50_000,
        ]
        for (name, length) in files {
            try Data(repeating: 1, count: length).write(to: URL(fileURLWithPath: fixture.path + "/" + name))
        }
        // An unrecognised file does not count.
        try Data(repeating: 1, count: 100_000).write(to: URL(fileURLWithPath: fixture.path + "/tmp/notes"))
        _ = try? fixture.sweep()
        let taken = try files.keys.reduce(0) { try $0 + FileStatus.of(fixture.path + "/" + $1).allocatedSize }
        #expect(fixture.store.control.overhead == before + taken)
        #expect(fixture.store.overhead == before + taken)
    }
}
