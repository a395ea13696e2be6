// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
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
        let report = try cache.collect(options)
        #expect(!report.isComplete && report.removed.isEmpty)
    }

    @Test func `who may not wait is told who is collecting`() throws {
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        try cache.collect { progress in
            guard progress.phase == .waiting else { return }
            let error = #expect(throws: CacheError.self) {
                var options = CollectionOptions()
                options.patience = .zero
                try cache.collect(options)
            }
            let holder = "process \(ProcessInfo.processInfo.processIdentifier) has been collecting for "
            #expect(error?.code == .busy && error?.message.contains(holder) == true)
        }
    }
}
