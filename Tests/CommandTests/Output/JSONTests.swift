// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct JSONTests {
    @Test func `names are sorted, and slashes are not escaped`() throws {
        #expect(try JSON.line(["b": "x/y", "a": "\n"]) == "{\"a\":\"\\n\",\"b\":\"x/y\"}\n")
    }

    @Test func `every millisecond is written exactly`() throws {
        for millisecond in 0..<1000 {
            let date = Date(timeIntervalSince1970: 1_795_223_197 + Double(millisecond) / 1000)
            let digits = String(1000 + millisecond).dropFirst()
            #expect(try JSON.line([date]) == "[\"2026-11-21T01:06:37.\(digits)Z\"]\n")
        }
    }

    @Test func `time spans are written in seconds`() {
        #expect(Duration.milliseconds(1500).inSeconds == 1.5)
    }

    @Test func `strings contain no characters that act on a terminal`() throws {
        let text =
            "a\u{7F}\u{9B}\u{85}\u{61C}\u{200E}\u{200F}\u{202A}\u{202E}\u{2028}\u{2029}\u{2066}\u{2069}\u{E0067}é👩‍👧"
        let line = try JSON.line([text])
        #expect(
            line
                == #"["a\u007f\u009b\u0085\u061c\u200e\u200f\u202a\u202e\u2028\u2029\u2066\u2069\udb40\udc67é👩‍👧"]"#
                + "\n"
        )
        #expect(try JSONDecoder().decode([String].self, from: Data(line.utf8)) == [text])
    }
}
