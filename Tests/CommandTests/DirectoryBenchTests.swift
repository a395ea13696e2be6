// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import diskcache

@Suite(.takesTurns) struct DirectoryBenchTests {
    static func row(_ microseconds: [Int64], usual: [Double] = [1, 10]) -> DirectoryBench.Row {
        var histogram = LatencyHistogram()
        for time in microseconds { histogram.record(nanoseconds: time * 1000) }
        return DirectoryBench.Row("op", usual, histogram, count: microseconds.count, in: .milliseconds(1))
    }

    @Test func `a row has the rate, the median and what is usual`() {
        let row = Self.row([5, 6, 70])
        #expect(row.count == 3 && row.perSecond == 3000)
        #expect(abs(row.medianMicroseconds - 6) < 0.1)
        #expect(abs((row.p99Microseconds ?? 0) - 70) < 1)
        #expect(row.usualMicroseconds == [1, 10])
    }

    @Test func `of one call there is no percentile`() {
        #expect(Self.row([5]).p99Microseconds == nil)
    }

    @Test(arguments: [([Int64(9), 9, 99], false), ([11, 11, 1], true)])
    func `slow is what has a median above the usual one`(times: [Int64], isSlow: Bool) {
        #expect(Self.row(times).isSlow == isSlow)
        #expect(DirectoryBench.text([Self.row(times)]).contains("SLOW") == isSlow)
    }

    @Test func `the table is aligned`() {
        let lines = DirectoryBench.text([Self.row([5]), Self.row([500, 500])]).split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines[0].hasPrefix("OPERATION, 4 KiB  PER SECOND  MEDIAN µs  P99 µs  USUAL µs"))
        #expect(lines[1].hasSuffix("1 000        5.0       -  1.0–10"))
    }
}
