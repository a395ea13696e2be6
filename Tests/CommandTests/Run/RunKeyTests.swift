// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct RunKeyTests {
    /// Runs that must all have different keys.
    static let different: [RunKey] = [
        RunKey(words: ["a", "b"]), RunKey(words: ["a b"]), RunKey(words: ["ab"]),
        RunKey(words: ["a", "b", ""]),
        RunKey(words: ["", "a", "b"]), RunKey(words: ["b", "a"]), RunKey(words: ["a", "1:b"]),
        RunKey(words: ["aw1:b"]),
        RunKey(words: ["a", "b"], environment: ["V": nil]),
        RunKey(words: ["a", "b"], environment: ["V": []]),
        RunKey(words: ["a", "b"], environment: ["V": [0xFF]]),
        RunKey(words: ["a", "b"], environment: ["W": nil]),
        RunKey(words: ["a", "b"], environment: ["V": nil, "W": []]),
        RunKey(words: ["a", "b"], environment: ["V": [], "W": nil]),
        RunKey(words: ["a", "b"], workingDirectory: [47]),
        RunKey(words: ["a", "b"], workingDirectory: [47, 47]),
        RunKey(words: ["a", "b"], modified: ["f": nil]),
        RunKey(words: ["a", "b"], modified: ["f": Timestamp(nanoseconds: 0)]),
        RunKey(words: ["a", "b"], modified: ["f": Timestamp(nanoseconds: 1)]),
        RunKey(words: ["a", "b"], modified: ["g": Timestamp(nanoseconds: 1)]),
        RunKey(words: ["a", "b"], contents: ["f": nil]),
        RunKey(words: ["a", "b"], contents: ["f": Digest(ofKey: "1")]),
        RunKey(words: ["a", "b"], contents: ["f": Digest(ofKey: "2")]),
        RunKey(words: ["a", "b"], contents: ["g": Digest(ofKey: "2")]),
        RunKey(words: ["ü"]), RunKey(words: ["u\u{308}"]),
        RunKey(words: ["a"], contents: ["ü": Digest(ofKey: "1"), "u\u{308}": Digest(ofKey: "2")]),
        RunKey(words: ["a"], contents: ["ü": Digest(ofKey: "1"), "u\u{308}": Digest(ofKey: "3")]),
        RunKey(words: ["a"], contents: ["ü": Digest(ofKey: "3"), "u\u{308}": Digest(ofKey: "2")]),
    ]

    @Test func `runs that differ in any part have different keys`() {
        #expect(Set(Self.different.map(\.text)).count == Self.different.count)
        // Also without the digest: the encoding itself is unambiguous.
        #expect(Set(Self.different.map(\.encoded)).count == Self.different.count)
    }

    @Test func `the key does not depend on the order of the environment variables`() {
        let one = RunKey(words: ["x"], environment: ["A": [1], "B": nil, "C": [3]])
        let other = RunKey(words: ["x"], environment: ["C": [3], "B": nil, "A": [1]])
        #expect(one.text == other.text)
    }

    @Test(arguments: [
        (["date", "+%s"], "date +%s"), (["sh", "-c", "a; b"], "sh -c 'a; b'"), (["x", ""], "x ''"),
        (["it's"], "'it'\\''s'"), (["ls", "ü/*"], "ls 'ü/*'"),
    ])
    func `a key contains the command with shell quoting`(words: [String], text: String) {
        let key = RunKey(words: words).text
        #expect(key.hasPrefix("run:") && key.hasSuffix(" " + text))
        #expect(key.utf8.count == "run:".count + 32 + 1 + text.utf8.count)
    }

    @Test func `the key of a long command is short and still unique`() {
        let long = String(repeating: "ü", count: 5000)
        let keys = [[long, "1"], [long, "2"]].map { RunKey(words: $0).text }
        #expect(keys[0] != keys[1])
        #expect(keys.allSatisfy { $0.utf8.count < 250 })
    }

    @Test func `words are bytes, and words of different bytes have different keys`() {
        let keys = [[0xFF], [0xFE], [0xC3], Array("\u{FFFD}".utf8)].map {
            RunKey(words: [$0 as [UInt8]]).text
        }
        #expect(Set(keys).count == keys.count)
        #expect(keys.allSatisfy { $0.hasSuffix(" \u{FFFD}") })
    }
}

extension RunKey {
    /// Makes the key of a run whose words are text.
    fileprivate init(
        words: [String],
        environment: KeyValuePairs<String, [UInt8]?> = [:],
        workingDirectory: [UInt8]? = nil,
        modified: KeyValuePairs<String, Timestamp?> = [:],
        contents: KeyValuePairs<String, Digest?> = [:]
    ) {
        self.init(
            words: words.map { Array($0.utf8) },
            environment: Self.named(environment),
            workingDirectory: workingDirectory,
            modified: Self.named(modified),
            contents: Self.named(contents)
        )
    }

    private static func named<Value>(_ pairs: KeyValuePairs<String, Value>) -> [[UInt8]: Value] {
        Dictionary(uniqueKeysWithValues: pairs.map { (Array($0.key.utf8), $0.value) })
    }
}
