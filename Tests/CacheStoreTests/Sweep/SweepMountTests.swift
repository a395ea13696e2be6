// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Sweeps of a dedicated file system.
///
/// No other process changes its free space, and its change times need not reflect changed attributes.
@Suite(.enabled(if: Mount.isAllowed, "mounting a file system needs root"), .takesTurns)
struct SweepMountTests {
    private let mount: Mount
    private let store: Store

    init() throws {
        mount = try Mount("tmpfs", options: "size=32m")
        store = try StoreFixture.open(mount.path + "/cache")
    }

    private func put(_ value: String, _ key: String) throws {
        let bytes = Array(value.utf8)
        let record = Record(content: Content(of: bytes.span), created: .now)
        try store.put(bytes.span, for: Digest(ofKey: key), record)
    }

    private func available() throws -> Int64 {
        try store.directory.root.descriptor.fileSystemSpace().availableBytes
    }

    @Test func `entries are evicted until enough space is free, as a dry run predicts`() throws {
        for index in 0..<50 { try put("\(index) " + String(repeating: "x", count: 8000), "key \(index)") }
        let before = try available()
        var request = SweepRequest()
        request.limits.minimumFree = .bytes(ByteCount(before + 100_000))
        request.isDryRun = true
        let rehearsal = try Sweep.run(request, on: store, now: .now)
        request.isDryRun = false
        let report = try Sweep.run(request, on: store, now: .now)
        #expect(report.removed == rehearsal.removed)
        // Each has two pages, plus the space of its attribute.
        let evicted = try #require(report.removed[.freeSpace])
        #expect((8...13).contains(evicted.count) && evicted.bytes >= 100_000)
        // Less the candidate list of two pages.
        #expect(try available() >= before + 100_000 - 8192)
    }

    @Test func `the record shows use and changes if change times do not`() throws {
        for index in 0..<6 { try put("value \(index)", "key \(index)") }
        var request = SweepRequest()
        request.limits.maximumEntries = 100
        _ = try Sweep.run(request, on: store, now: .now)
        try put("other", "key 0")
        _ = try store.get(Digest(ofKey: "key 1"), now: .now + .seconds(1), allowingStale: false)
        let report = try #require(try ListedEviction.run(Excess(entries: 6), on: store, now: .now))
        #expect(report.removedInAll.count == 4 && report.spared == 2 && report.isExhausted)
        let other = try store.get(Digest(ofKey: "key 0"), now: .now, allowingStale: false)
        #expect(other.map { String(decoding: $0.value, as: UTF8.self) } == "other")
    }
}
