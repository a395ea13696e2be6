// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct ExpirationHistogramTests {
    private let fixture: StoreFixture
    private let histogram: ExpirationHistogram
    private let start = Timestamp(milliseconds: 1_700_000_000_123)

    init() throws {
        fixture = try StoreFixture()
        histogram = ExpirationHistogram(in: try #require(fixture.store.control.writableWords))
    }

    private func count(_ lifetime: Duration, from created: Timestamp, sign: Int64 = 1) {
        histogram.count(sign, bytes: 5000, expiring: created + lifetime, lifetime: lifetime)
    }

    @Test(
        arguments: [
            .zero, .milliseconds(1), .milliseconds(480), .milliseconds(481), .seconds(10), .seconds(3600),
            .seconds(86_400), .seconds(360 * 86_400),
        ] as [Duration]
    )
    func `an expired entry is counted at most a third of its lifetime late`(lifetime: Duration) {
        count(lifetime, from: start)
        #expect(histogram.expired(by: start + lifetime - .milliseconds(1)).entries == 0)
        let late = start + lifetime + max(.milliseconds(32), lifetime / 3)
        let expected = ExpirationHistogram.Amount(entries: 1, bytes: 8192)
        #expect(histogram.expired(by: late) == expected)
        #expect(histogram.expired(by: late + .seconds(7 * 86_400)) == expected)
    }

    /// The periods of a level are numbered by 16 bits: after 65,536 they begin with 0 again.
    @Test func `a fresh entry is not counted as expired when the numbers of the periods begin again`() {
        let lifetime = Duration.seconds(100)
        let wrong = stride(from: 0, to: 14 * 86_400, by: 64).filter { second in
            let created = start + .seconds(second)
            count(lifetime, from: created)
            let expired = histogram.expired(by: created).entries
            count(lifetime, from: created, sign: -1)
            return expired != 0
        }
        #expect(wrong.isEmpty)
    }

    @Test func `a renewed entry counts once`() {
        count(.seconds(10), from: start)
        count(.seconds(10), from: start, sign: -1)
        count(.seconds(20), from: start)
        #expect(histogram.expired(by: start + .seconds(15)).entries == 0)
        #expect(histogram.expired(by: start + .seconds(30)).entries == 1)
        // Subtracting an entry that was not counted leaves no deficit.
        count(.seconds(50), from: start, sign: -1)
        count(.seconds(20), from: start, sign: -1)
        count(.seconds(20), from: start, sign: -1)
        count(.seconds(20), from: start)
        #expect(histogram.expired(by: start + .seconds(30)).entries == 1)
    }

    @Test func `entries of many lifetimes add up, and a sweep forgets the expired ones`() {
        var generator = SeededGenerator(seed: 7)
        var ends: [Timestamp] = []
        var created = start
        for _ in 0..<5000 {
            created = created + .milliseconds(Int.random(in: 0..<200, using: &generator))
            let lifetime = Duration.milliseconds(1 << Int.random(in: 0..<22, using: &generator))
            count(lifetime, from: created)
            ends.append(created + lifetime)
        }
        let seen = histogram.expired(by: created).entries
        let real = ends.count { $0 <= created }
        #expect(seen <= real && seen > real * 9 / 10)
        let mark = histogram.mark(at: created)
        count(.milliseconds(1), from: created)
        histogram.forget(mark)
        #expect(histogram.expired(by: created).entries == 0)
        #expect(histogram.expired(by: created + .seconds(86_400)).entries == 5001 - seen)
    }

    @Test func `a lifetime of years is not counted, and no number overflows`() {
        count(.seconds(400 * 86_400), from: start)
        #expect(histogram.expired(by: .distantFuture).entries == 0)
        histogram.count(1, bytes: .max, expiring: .distantFuture, lifetime: .seconds(1))
        histogram.count(1, bytes: -5, expiring: .distantPast, lifetime: .seconds(-1))
        for _ in 0..<3 {
            histogram.count(1, bytes: .max, expiring: start, lifetime: .seconds(1))
            histogram.count(1, bytes: .max, expiring: start, lifetime: .seconds(9))
        }
        #expect(histogram.expired(by: start + .seconds(100)).bytes >= 1 << 43)
    }
}
