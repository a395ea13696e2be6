// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import diskcache

@Suite(.takesTurns) struct JSONTests {
    @Test func `names are in order and slashes as they are`() throws {
        #expect(try JSON.line(["b": "x/y", "a": "\n"]) == "{\"a\":\"\\n\",\"b\":\"x/y\"}\n")
    }

    @Test func `every millisecond is written as it is`() throws {
        for millisecond in 0..<1000 {
            let date = Date(timeIntervalSince1970: 1_795_223_197 + Double(millisecond) / 1000)
            let digits = String(1000 + millisecond).dropFirst()
            #expect(try JSON.line([date]) == "[\"2026-11-21T01:06:37.\(digits)Z\"]\n")
        }
    }

    @Test func `spans are seconds`() {
        #expect(Duration.milliseconds(1500).inSeconds == 1.5)
    }
}
