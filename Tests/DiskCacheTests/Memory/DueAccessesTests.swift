// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct DueAccessesTests {
    @Test func `the latest access of each key is taken once`() {
        var due = DueAccesses()
        let key = Digest(ofKey: "key")
        due.add(key, at: Timestamp(nanoseconds: 1))
        due.add(key, at: Timestamp(nanoseconds: 2))
        let taken = due.take()
        #expect(taken == [key: Timestamp(nanoseconds: 2)])
        let rest = due.take()
        #expect(rest.isEmpty)
    }

    @Test func `a full table drops accesses of new keys but updates those of known ones`() {
        var due = DueAccesses()
        for index in 0...DueAccesses.capacity { due.add(Digest(ofKey: "\(index)"), at: .distantPast) }
        due.add(Digest(ofKey: "0"), at: .distantFuture)
        let taken = due.take()
        #expect(taken.count == DueAccesses.capacity)
        #expect(taken[Digest(ofKey: "\(DueAccesses.capacity)")] == nil)
        #expect(taken[Digest(ofKey: "0")] == .distantFuture)
    }
}
