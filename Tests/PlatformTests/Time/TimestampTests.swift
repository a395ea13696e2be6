// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct TimestampTests {
    @Test func `sums and differences saturate instead of trapping`() {
        #expect(Timestamp.distantFuture + .seconds(1) == .distantFuture)
        #expect(Timestamp.distantPast - .seconds(1) == .distantPast)
        #expect(Timestamp(nanoseconds: 0) + .seconds(Int64.max) == .distantFuture)
        #expect(Timestamp(nanoseconds: 0) - .seconds(Int64.max) == Timestamp(nanoseconds: -Int64.max))
        #expect(Timestamp.distantFuture - Timestamp.distantPast == .nanoseconds(Int64.max))
        #expect(Timestamp.distantPast - Timestamp.distantFuture == .nanoseconds(Int64.min))
    }

    @Test func `ordinary sums are exact`() {
        let time = Timestamp(nanoseconds: 1_700_000_000_123_456_789)
        #expect(time + .milliseconds(1) == Timestamp(nanoseconds: 1_700_000_000_124_456_789))
        #expect((time + .seconds(60)) - time == .seconds(60))
    }

    @Test func `now moves forward`() {
        let first = Timestamp.now
        #expect(Timestamp.now >= first)
        #expect(first > Timestamp(nanoseconds: 1_700_000_000_000_000_000))
    }
}

@Suite(.takesTurns) struct BackoffTests {
    @Test func `pauses grow, vary, and never exceed the cap`() {
        var backoff = Backoff()
        let pauses = (0..<100).map { _ in backoff.next() }
        #expect(pauses.allSatisfy { $0 <= Backoff.longest && $0 >= Backoff.shortest / 2 })
        #expect(pauses[0] <= Backoff.shortest)
        #expect(pauses[20...].allSatisfy { $0 >= Backoff.longest / 2 })
        #expect(Set(pauses[20...]).count > 50)
    }
}

@Suite(.takesTurns) struct RelativePathTests {
    @Test func `a relative path holds its bytes up to its capacity`() {
        var path: RelativePath = "objects"
        path.append(UInt8(ascii: "/"))
        path.append(UInt8(ascii: "a"))
        #expect(path.description == "objects/a")
        let longest = String(repeating: "x", count: RelativePath.capacity)
        #expect(RelativePath(longest).description == longest)
    }
}
