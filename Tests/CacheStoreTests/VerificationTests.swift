// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite struct VerificationTests {
    @Test func `a sound store is clean, and orphans are no fault`() throws {
        let fixture = try StoreFixture()
        try fixture.put("one", "a")
        try fixture.put("two", "a")
        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.isClean)
        #expect(report.objects == 2 && report.entries == 1 && report.orphans == 1 && report.objectBytes == 6)
    }

    @Test func `each kind of damage is found, and repaired on request`() throws {
        let fixture = try StoreFixture()
        for name in ["sound", "flipped", "gone", "record", "empty"] { try fixture.put("v " + name, name) }
        try fixture.damage(fixture.objectPath("v flipped"), Array("w flipped".utf8))
        try FileManager.default.removeItem(atPath: fixture.objectPath("v gone"))
        try fixture.changeRecord(of: "record") { $0[40] ^= 4 }
        try fixture.changeRecord(of: "empty") { $0 = [] }

        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.corruptObjects == [Digest(of: Array("v flipped".utf8).span)])
        #expect(report.corruptEntries == [Digest(ofKey: "record")])
        #expect(report.unfinishedEntries == 1)
        #expect(Set(report.danglingEntries).contains(Digest(ofKey: "gone")))
        #expect(!report.isClean && report.repaired == 0)

        let repair = try Verification.run(on: fixture.store, isRepairing: true)
        #expect(repair.repaired == 5)
        #expect(try Verification.run(on: fixture.store, isRepairing: false).isClean)
        #expect(try fixture.get("sound") == "v sound")
        #expect(fixture.entries.count == 1)
    }

    @Test func `damage behind a lock that is held is reported, and stays until it is free`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.changeRecord(of: "key") { $0 = Array("garbage".utf8) }
        let other = try StoreFixture.open(fixture.path)
        try other.entryStripes.withLock(.shared, of: Digest(ofKey: "key")) { () throws(StoreError) in
            let report = try Verification.run(on: fixture.store, isRepairing: true)
            #expect(!report.isClean && report.repaired == 0)
        }
        #expect(try Verification.run(on: fixture.store, isRepairing: true).repaired == 1)
        #expect(try Verification.run(on: fixture.store, isRepairing: false).isClean)
    }

    @Test func `what a killed put leaves is no fault`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        try fixture.changeRecord(of: "key") { $0 = [] }
        let report = try Verification.run(on: fixture.store, isRepairing: false)
        #expect(report.isClean && report.unfinishedEntries == 1 && report.orphans == 1)
    }
}
