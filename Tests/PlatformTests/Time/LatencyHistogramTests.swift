// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct LatencyHistogramTests {
    @Test(arguments: [0.01, 0.5, 0.9, 0.99, 0.999, 1])
    func `percentiles of evenly spread values are accurate to 1 percent`(share: Double) throws {
        var histogram = LatencyHistogram()
        for value in (1...100_000).shuffled() { histogram.record(nanoseconds: Int64(value) * 100) }
        let found = try #require(histogram.microseconds(atShare: share))
        let exact = (share * 100_000).rounded(.up) / 10
        #expect(abs(found - exact) <= exact * 0.01)
    }

    @Test(arguments: [0, 1, 63, 64, 127, 128, 1_000, 123_456_789, 3_600_000_000_000, Int64.max])
    func `a single value is accurate to 1 percent, whatever its size`(nanoseconds: Int64) throws {
        var histogram = LatencyHistogram()
        histogram.record(nanoseconds: nanoseconds)
        let found = try #require(histogram.microseconds(atShare: 0.5)) * 1000
        #expect(abs(found - Double(nanoseconds)) <= max(0.5, Double(nanoseconds) * 0.01))
    }

    @Test
    func `one slow call in a hundred does not change the 99th percentile`() throws {
        var histogram = LatencyHistogram()
        for _ in 0..<99 { histogram.record(nanoseconds: 1_000) }
        histogram.record(nanoseconds: 1_000_000)
        #expect(try #require(histogram.microseconds(atShare: 0.99)) < 1.1)
        #expect(try #require(histogram.microseconds(atShare: 1)) > 900)
    }

    @Test
    func `a histogram without calls has no percentile`() {
        #expect(LatencyHistogram().microseconds(atShare: 0.5) == nil)
    }

    @Test
    func `merged histograms equal one histogram of all values`() {
        var whole = LatencyHistogram()
        var parts = [LatencyHistogram(), LatencyHistogram(), LatencyHistogram()]
        for value in 0..<3000 {
            whole.record(nanoseconds: Int64(value * value))
            parts[value % 3].record(nanoseconds: Int64(value * value))
        }
        var merged = LatencyHistogram()
        for part in parts { merged.merge(part) }
        #expect(merged == whole)
        #expect(merged.count == 3000)
    }

    @Test
    func `a histogram survives encoding and decoding`() throws {
        var histogram = LatencyHistogram()
        for value in [0, 5, 5, 70, 1_000_000] { histogram.record(nanoseconds: Int64(value)) }
        let decoded = try JSONDecoder().decode(
            LatencyHistogram.self,
            from: JSONEncoder().encode(histogram)
        )
        #expect(decoded == histogram)
    }
}
