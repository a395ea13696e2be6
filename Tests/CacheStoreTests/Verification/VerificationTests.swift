// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct VerificationTests {
    @Test func `keys stored by a clock that was ahead are counted and are no damage`() throws {
        let fixture = try StoreFixture()
        for (key, created) in [("now", Timestamp.now), ("later", .now + .seconds(3600))] {
            var record = fixture.record(key, created: created)
            record.key = key
            try fixture.store.put(Array(key.utf8).span, for: Digest(ofKey: key), record)
        }
        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.futureEntries == 1 && report.entries == 2 && report.isClean)
    }

    @Test func `an intact store is clean, even with orphans`() throws {
        let fixture = try StoreFixture()
        try fixture.put("one", "a")
        try fixture.put("two", "a")
        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.isClean)
        #expect(report.objects == 2 && report.entries == 1 && report.orphans == 1 && report.objectBytes == 6)
    }

    @Test func `each kind of damage is found and repaired on request`() throws {
        let fixture = try StoreFixture()
        for name in ["sound", "flipped", "gone", "record", "empty"] { try fixture.put("v " + name, name) }
        try fixture.damage(fixture.objectPath("v flipped"), Array("w flipped".utf8))
        try FileManager.default.removeItem(atPath: fixture.objectPath("v gone"))
        try fixture.changeRecord(of: "record") { $0[40] ^= 4 }
        try fixture.changeRecord(of: "empty") { $0 = [] }

        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.corruptObjects == [Digest(of: Array("v flipped".utf8).span).description])
        #expect(report.corruptEntries == [Digest(ofKey: "record").description])
        #expect(report.unfinishedEntries == 1)
        #expect(report.danglingEntries.contains(Digest(ofKey: "gone").description))
        #expect(!report.isClean && report.repaired == 0)

        let repair = try Verification.run(on: fixture.store, isRepairing: true)
        #expect(repair.repaired == 5)
        #expect(try Verification.run(on: fixture.store, isRepairing: false).isClean)
        #expect(try fixture.get("sound") == "v sound")
        #expect(fixture.entries.count == 1)
    }

    @Test func `damage behind a held lock is reported, and repaired once the lock is free`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.changeRecord(of: "key") { $0 = Array("garbage".utf8) }
        let other = try StoreFixture.open(fixture.path)
        let stripe = Digest(ofKey: "key").stripe
        let lock = try other.entries.stripes.lock(.shared, stripe: stripe)
        let report = try Verification.run(on: fixture.store, isRepairing: true)
        #expect(!report.isClean && report.repaired == 0)
        lock.release()
        #expect(try Verification.run(on: fixture.store, isRepairing: true).repaired == 1)
        #expect(try Verification.run(on: fixture.store, isRepairing: false).isClean)
    }

    @Test func `leftovers of a killed put are no damage`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.changeRecord(of: "key") { $0 = [] }
        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.isClean && report.unfinishedEntries == 1 && report.orphans == 1)
    }

    @Test func `keys without records, as in a copy, are damage, and a sweep removes them`() throws {
        let fixture = try StoreFixture()
        for number in 0..<8 { try fixture.put("value \(number)", "key \(number)") }
        try fixture.changeRecord(of: "key 0") { $0 = [] }
        try fixture.changeRecord(of: "key 1") { $0 = [] }
        #expect(
            try Verification.run(on: fixture.store, isRepairing: false).isClean,
            "two may be killed puts'"
        )
        try fixture.changeRecord(of: "key 2") { $0 = [] }
        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.metadataIsLost && !report.isClean && report.unfinishedEntries == 3)
        try fixture.sweep()
        #expect(fixture.entries.count == 5 && fixture.objects.count == 5)
        #expect(try Verification.run(on: fixture.store, isRepairing: false).isClean)
    }

    // MARK: Lengthened objects

    /// Lengthens a file to a terabyte without allocating space; reading it would take ten minutes.
    private func lengthen(_ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        let handle = try #require(FileHandle(forWritingAtPath: path))
        try handle.truncate(atOffset: 1 << 40)
        try handle.close()
    }

    @Test
    func `a lengthened object is found by its length and not read beyond its record's`()
        throws
    {
        let fixture = try StoreFixture()
        // Enough keys for several threads to meet the object at the same time.
        for number in 0..<40 { try fixture.put("value", "\(number)") }
        try lengthen(fixture.objectPath("value"))
        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.corruptObjects == [Digest(of: Array("value".utf8).span).description])
        #expect(report.corruptEntryCount == 0 && report.danglingEntryCount == 0)
        let repaired = try Verification.run(on: fixture.store, isRepairing: true)
        #expect(repaired.repaired == 41)
        #expect(fixture.objects.isEmpty && fixture.entries.isEmpty)
    }

    @Test func `a lengthened object without a key is not read`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try lengthen(fixture.objectPath("value"))
        try fixture.put("other", "key")
        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.isClean && report.orphans == 1 && report.objects == 1)
        try fixture.sweep()
        #expect(fixture.objects.count == 1)
    }

    @Test func `reading a lengthened object is an immediate miss and removes it`() throws {
        let fixture = try StoreFixture()
        let digest = Digest(of: Array("value".utf8).span)
        let reads: [(Store) throws -> Bool] = [
            { try $0.get(Digest(ofKey: "key"), now: .now, allowingStale: false) == nil },
            { try $0.open(Digest(ofKey: "key"), now: .now, allowingStale: false) == nil },
            { try $0.observe(Digest(ofKey: "key"), now: .now).value == nil },
        ]
        for read in reads {
            try fixture.put("value", "key")
            try lengthen(fixture.objectPath("value"))
            #expect(try read(fixture.store))
            #expect(fixture.objects.isEmpty)
        }
        try fixture.put("value", digest.description)
        try lengthen(fixture.objectPath("value"))
        #expect(try fixture.store.data(for: digest) == nil)
        #expect(fixture.objects.isEmpty)
    }

    @Test func `an unchanged sparse value is intact`() throws {
        let fixture = try StoreFixture()
        let file = fixture.directory.path + "/file"
        makeFile(file)
        try lengthen(file)
        let handle = try #require(FileHandle(forWritingAtPath: file))
        try handle.truncate(atOffset: 80 << 20)
        let source = try FileDescriptor(opening: file, .readOnly)
        let key = Digest(ofKey: "key")
        let staged = try fixture.store.stage(copying: source, for: key, fixture.record(""))
        let record = Record(content: staged.content, created: .now)
        try fixture.store.put(staged, for: key, record)
        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.isClean && report.objects == 1 && report.objectBytes == 80 << 20)
        #expect(report.orphans == 0)
    }

    // MARK: Samples

    private func verify(
        _ fixture: StoreFixture,
        _ sample: VerifyOptions.Sample,
        isRepairing: Bool = false
    ) throws -> VerifyReport {
        var request = VerifyOptions()
        request.sample = sample
        request.repair = isRepairing
        return try Verification.run(request, on: fixture.store)
    }

    @Test func `a sample reads the requested number and reports the total`() throws {
        let fixture = try StoreFixture()
        for number in 0..<200 { try fixture.put("value \(number)", "key \(number)") }
        let counted = try verify(fixture, .count(50))
        #expect(counted.objects == 50 && counted.listedObjects == 200 && counted.isClean)
        #expect((1..<200).contains(counted.entries) && counted.listedEntries == 200)
        #expect(counted.orphans == nil)
        #expect(try verify(fixture, .count(1000)).objects == 200)
        #expect(try verify(fixture, .count(1000)).entries == 200)
        #expect(try verify(fixture, .count(0)).objects == 0)
        let shared = try verify(fixture, .percent(50))
        // Both tails together have a probability of 1e-12.
        #expect((50..<150).contains(shared.objects) && (50..<150).contains(shared.entries))
        #expect(try verify(fixture, .percent(100)).objects == 200)
        #expect(try verify(fixture, .percent(0)).objects == 0)
    }

    @Test func `a sample by percentage has at least one object`() throws {
        let fixture = try StoreFixture()
        for number in 0..<5 { try fixture.put("value \(number)", "key \(number)") }
        for _ in 0..<20 { #expect(try verify(fixture, .percent(1e-4)).objects == 1) }
    }

    @Test func `all objects are equally likely to be in a sample`() throws {
        let fixture = try StoreFixture()
        for number in 0..<20 {
            try fixture.put("v \(number)", "key \(number)")
            try fixture.damage(fixture.objectPath("v \(number)"), Array("w".utf8))
        }
        var hits: [String: Int] = [:]
        for _ in 0..<300 {
            for digest in try verify(fixture, .count(5)).corruptObjects {
                hits[digest, default: 0] += 1
            }
        }
        // Each has 75 expected hits with a standard deviation of 7.5; seven deviations have a probability of 1e-11.
        #expect(hits.count == 20 && hits.values.allSatisfy { (22..<128).contains($0) })
    }

    @Test func `the keys of a sample are compared with values that were not read`() throws {
        let fixture = try StoreFixture()
        for name in ["gone", "short", "sound"] { try fixture.put("v " + name, name) }
        try FileManager.default.removeItem(atPath: fixture.objectPath("v gone"))
        try fixture.damage(fixture.objectPath("v short"), Array("v short, longer".utf8))
        let found = try verify(fixture, .percent(100))
        #expect(found.danglingEntryCount == 1 && found.corruptObjectCount == 1)
    }

    @Test func `a value of the wrong length is found by any of its keys in a sample`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.put("other", "other")
        try fixture.damage(fixture.objectPath("value"), Array("value, longer".utf8))
        let seen = Locked<[Set<String>]>.Box([])
        // The one object that is read is one of two, so half of the time it is not the damaged one.
        for _ in 0..<60 {
            let report = try verify(fixture, .count(1))
            #expect(
                report.entries < 2
                    || report.corruptObjects == [Digest(of: Array("value".utf8).span).description]
            )
            seen.value.withLock { $0.append(Set(report.corruptObjects)) }
        }
        #expect(seen.value.withLock { $0.contains { !$0.isEmpty } })
    }

    // MARK: Many findings and threads

    @Test func `the first thousand findings are listed, and all are counted and reported`() throws {
        let fixture = try StoreFixture()
        for number in 0..<1100 { try fixture.put("same value", "key \(number)") }
        try FileManager.default.removeItem(atPath: fixture.objectPath("same value"))
        let told = Locked<Set<VerifyReport.Finding>>.Box([])
        let report = try Verification.run(VerifyOptions(), on: fixture.store) { finding in
            told.value.withLock { _ = $0.insert(finding) }
        }
        #expect(report.danglingEntryCount == 1100)
        #expect(report.danglingEntries.count == VerifyReport.longestList)
        #expect(told.value.withLock { $0.count } == 1100)
    }

    @Test func `the progress reaches its end in both phases`() throws {
        let fixture = try StoreFixture()
        for number in 0..<300 { try fixture.put("value \(number)", "key \(number)") }
        let heard = Locked<[CacheProgress]>.Box([])
        var request = VerifyOptions()
        request.threads = 1
        _ = try Verification.run(
            request,
            on: fixture.store,
            progress: { progress in
                heard.value.withLock { $0.append(progress) }
            }
        )
        let all = heard.value.withLock { $0 }
        for phase in [CacheProgress.Phase.verifying, .verifyingEntries] {
            let steps = all.filter { $0.phase == phase }
            #expect(steps.first?.done == 0 && steps.last?.items == 300)
            #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.done <= $1.done })
            // Except for rounding.
            #expect((steps.last.map { $0.total - $0.done } ?? 999) < 100)
        }
        #expect(all.last { $0.phase == .verifying }?.bytes == 2590)
    }

    @Test func `progress is reported only on the calling thread`() throws {
        let fixture = try StoreFixture()
        for number in 0..<300 { try fixture.put("value \(number)", "key \(number)") }
        let threads = Locked<Set<Int>>.Box([])
        var request = VerifyOptions()
        request.threads = 4
        _ = try Verification.run(
            request,
            on: fixture.store,
            progress: { _ in threads.value.withLock { _ = $0.insert(threadNumber) } }
        )
        #expect(threads.value.withLock { $0 } == [threadNumber])
    }

    @Test func `the findings are the same for any number of threads`() throws {
        let fixture = try StoreFixture()
        for number in 0..<300 { try fixture.put("value \(number)", "key \(number % 290)") }
        for number in 0..<20 { try fixture.damage(fixture.objectPath("value \(number + 100)"), [1]) }
        for number in 0..<10 {
            try FileManager.default.removeItem(atPath: fixture.objectPath("value \(number + 200)"))
        }
        for threads in 1...4 {
            var request = VerifyOptions()
            request.threads = threads
            let report = try Verification.run(request, on: fixture.store)
            #expect(report.objects == 290 && report.entries == 290 && report.orphans == 10)
            #expect(report.corruptObjectCount == 20 && report.danglingEntryCount == 10)
            #expect(report.corruptEntryCount == 0)
        }
    }
}
