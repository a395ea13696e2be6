// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct DirectoryBenchTests {
    static func row(_ microseconds: [Int64], keys: Int = 1) -> DirectoryBench.Row {
        DirectoryBench.Row("op", 1...10, microseconds.map { .microseconds($0) }, keys: keys)
    }

    @Test func `a row has the rate, the median, the 99th percentile and the usual range`() {
        let row = Self.row([70, 5, 25])
        #expect(row.count == 3 && row.perSecond == 30_000)
        #expect(row.medianMicroseconds == 25 && row.p99Microseconds == 70)
        #expect(row.usualMicroseconds == [1, 10])
    }

    @Test func `a single call has no percentile, and its time is divided among its keys`() {
        let row = Self.row([500], keys: 100)
        #expect(row.count == 100 && row.perSecond == 200_000)
        #expect(row.medianMicroseconds == 5 && row.p99Microseconds == nil)
    }

    @Test(arguments: [([Int64(9), 9, 99], false), ([11, 11, 1], true)])
    func `a row is slow if its median is above the usual range`(times: [Int64], isSlow: Bool) {
        #expect(Self.row(times).isSlow == isSlow)
        #expect(DirectoryBench.text([Self.row(times)]).contains("SLOW") == isSlow)
    }

    @Test func `the table is aligned`() {
        let lines = DirectoryBench.text([Self.row([5]), Self.row([500, 500])]).split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines[0].hasPrefix("OPERATION, 4 KiB  PER SECOND  MEDIAN µs  P99 µs  USUAL µs"))
        #expect(lines[1].hasSuffix("200 000        5.0       -  1.0–10"))
    }
}
