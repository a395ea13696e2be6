// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct ListSorterTests {
    /// Returns the lines sorted by their keys.
    private func sorted(
        _ lines: [(key: String, line: String)],
        limit: Int = .max,
        isReversed: Bool = false
    ) throws -> [String] {
        var sorter = try ListSorter(isReversed: isReversed)
        for (key, line) in lines { try sorter.add(line, key: key) }
        var found: [String] = []
        try sorter.forEach(limit: limit) { line in
            found.append(String(decoding: line.indices.map { line[$0] }, as: UTF8.self))
        }
        return found
    }

    @Test(arguments: [0, 1, 500, 40_000], [false, true])
    func `any number of lines is sorted`(count: Int, isReversed: Bool) throws {
        let lines = (0..<count).map { (key: String(format: "%08d", $0), line: "line \($0)\n") }
        let wanted = isReversed ? lines.reversed() : lines
        #expect(try sorted(lines.shuffled(), isReversed: isReversed) == wanted.map(\.line))
    }

    @Test func `no more lines than the limit are returned`() throws {
        let lines = ["c", "a", "b"].map { (key: $0, line: $0) }
        #expect(try sorted(lines, limit: 2) == ["a", "b"])
        #expect(try sorted(lines, limit: 0).isEmpty)
        #expect(try sorted(lines, limit: 2, isReversed: true) == ["c", "b"])
    }

    @Test(arguments: [false, true])
    func `keys are compared as bytes, whatever they contain`(isReversed: Bool) throws {
        let keys = [
            "", "\0", "\0\0", "\0a", "\u{1}", "\u{1}\0", "\u{2}", "\u{2}a", "\u{3}", "A", "B", "a", "a\0",
            "a\u{1}", "a\u{2}", "a\n", "ab", "z", "\u{7F}", "é", "e\u{301}", "🙂",
        ].sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        let lines = keys.enumerated().map { (key: $0.element, line: "\($0.offset)\u{1}\n") }
        let wanted = isReversed ? lines.reversed() : lines
        #expect(try sorted(lines.shuffled(), isReversed: isReversed) == wanted.map(\.line))
    }

    @Test func `lines longer than any buffer stay whole`() throws {
        let long = (0..<3).map { String(repeating: "\($0)", count: 200_000) }
        #expect(try sorted([2, 0, 1].map { (key: "\($0)", line: long[$0]) }) == long)
    }
}
