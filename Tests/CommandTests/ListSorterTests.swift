// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import diskcache

@Suite(.takesTurns) struct ListSorterTests {
    /// Sorts numbers as lines, of which about 20 fit the budget.
    private func sorted(
        _ numbers: [Int],
        limit: Int = .max,
        isReversed: Bool = false,
        budget: Int = 1000
    ) throws -> (numbers: [Int], runs: Int) {
        let place = try TemporaryDirectory()
        var sorter = ListSorter(limit: limit, isReversed: isReversed, place: place.path, budget: budget)
        for number in numbers {
            try sorter.add("line \(number)", key: Array(String(format: "%08d", number).utf8))
        }
        var found: [Int] = []
        try sorter.forEach { line in
            let text = String(decoding: (0..<line.count).map { line[$0] }, as: UTF8.self)
            found.append(try #require(Int(text.dropFirst(5))))
        }
        #expect(place.files(below: "").isEmpty, "the file has no name")
        return (found, sorter.runs)
    }

    @Test(arguments: [0, 1, 19, 500, 4000], [false, true])
    func `any number comes in order, in memory or not`(count: Int, isReversed: Bool) throws {
        let numbers = Array(0..<count)
        let wanted = isReversed ? Array(numbers.reversed()) : numbers
        for budget in [1000, 100 << 20] {
            let (found, runs) = try sorted(numbers.shuffled(), isReversed: isReversed, budget: budget)
            #expect(found == wanted)
            #expect((runs > 1) == (count >= 500 && budget == 1000))
        }
    }

    @Test(arguments: [false, true])
    func `the first so many that fit need no file`(isReversed: Bool) throws {
        let (found, runs) = try sorted(Array(0..<5000).shuffled(), limit: 5, isReversed: isReversed)
        #expect(found == (isReversed ? [4999, 4998, 4997, 4996, 4995] : [0, 1, 2, 3, 4]))
        #expect(runs == 0)
        #expect(try sorted([3, 1, 2], limit: 0).numbers.isEmpty)
    }

    @Test func `a limit that does not fit is kept all the same`() throws {
        let (found, runs) = try sorted(Array(0..<5000).shuffled(), limit: 900)
        #expect(found == Array(0..<900) && runs > 1)
    }

    @Test func `equal keys keep all their lines, and one that begins another comes first`() throws {
        var sorter = ListSorter(limit: .max, isReversed: false, place: "/tmp", budget: 200)
        for key in ["b", "ab", "a", "", "a\u{FF}", "b", "abc"] {
            try sorter.add("\(key);", key: Array(key.utf8))
        }
        var text = ""
        try sorter.forEach { line in
            text += String(decoding: (0..<line.count).map { line[$0] }, as: UTF8.self)
        }
        #expect(text == ";a;ab;abc;a\u{FF};b;b;")
    }

    @Test func `lines longer than a buffer go through the file whole`() throws {
        let place = try TemporaryDirectory()
        var sorter = ListSorter(limit: .max, isReversed: false, place: place.path, budget: 1000)
        let long = (0..<3).map { String(repeating: "\($0)", count: 200_000) }
        for number in [2, 0, 1] { try sorter.add(long[number], key: [UInt8(number)]) }
        var lengths: [Int] = []
        var firsts: [UInt8] = []
        try sorter.forEach { line in
            lengths.append(line.count)
            firsts.append(line[0])
        }
        #expect(lengths == [200_000, 200_000, 200_000] && firsts == Array("012".utf8))
    }

    @Test func `no place to sort in is a failure that says so`() throws {
        var sorter = ListSorter(limit: .max, isReversed: false, place: "/nowhere", budget: 1)
        #expect {
            try sorter.add("x", key: [1])
        } throws: {
            ($0 as? Failure)?.message.contains("set $TMPDIR") ?? false
        }
    }
}
