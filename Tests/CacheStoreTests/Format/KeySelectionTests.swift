// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct KeySelectionTests {
    private func record(_ key: String?, tags: [String] = []) -> Record {
        var record = Record(content: Content(of: [1].span), created: .now)
        record.key = key
        record.details.tags = tags
        return record
    }

    @Test func `a prefix is compared by bytes, without normalization`() {
        let selection = KeySelection.prefix("caf\u{e9}")
        #expect(selection.includes(record("caf\u{e9}/1")))
        #expect(!selection.includes(record("cafe\u{301}/1")))
        #expect(!selection.includes(record("caf")))
        #expect(KeySelection.prefix("e").includes(record("e\u{301}")))
        #expect(KeySelection.prefix("") == .all)
    }

    @Test func `canonically equivalent texts are different selections and tags`() {
        let (one, other) = ("caf\u{e9}", "cafe\u{301}")
        for form in [KeySelection.prefix, KeySelection.tagged, KeySelection.glob] {
            #expect(form(one) == form(one) && form(one) != form(other))
            #expect(Set([form(one), form(other), form(one)]).count == 2)
        }
        #expect(KeySelection.prefix("a") != .tagged("a") && KeySelection.tagged("") != .all)
        #expect(KeySelection.tagged(one).includes(record(nil, tags: [one])))
        #expect(!KeySelection.tagged(one).includes(record(nil, tags: [other])))
        #expect(!KeySelection.tagged(one).covers(.tagged(other)))
    }

    @Test func `an unknown key is listed by no prefix but removed by every prefix`() {
        let unknown = record(nil, tags: ["t"])
        #expect(!KeySelection.prefix("a").includes(unknown) && KeySelection.prefix("a").mayInclude(unknown))
        #expect(!KeySelection.glob("*").includes(unknown) && !KeySelection.glob("*").mayInclude(unknown))
        #expect(KeySelection.all.includes(unknown) && KeySelection.tagged("t").includes(unknown))
        #expect(!KeySelection.tagged("u").mayInclude(unknown))
    }

    @Test(
        arguments: [
            ("*", "", true), ("*", "a/b", true), ("a*c", "abbc", true), ("a*c", "abcd", false),
            ("a*b*c", "a1b2b3c", true), ("a?c", "abc", true), ("a?c", "ac", false), ("?", "é", true),
            ("[a-c]x", "bx", true), ("[a-c]x", "dx", false), ("[!a-c]x", "dx", true), ("[]]", "]", true),
            ("[ab", "[ab", true), ("\\*", "*", true), ("\\*", "a", false), ("", "", true), ("", "a", false),
            ("a\\", "a\\", true), ("*.jpg", "a.jpg.png", false), ("**a", "bca", true), ("[z-a]", "z", false),
        ] as [(String, String, Bool)]
    )
    func `patterns match as in a shell, but also slashes`(pattern: String, key: String, matches: Bool) {
        #expect(KeySelection.glob(pattern).includes(record(key)) == matches, "\(pattern) on \(key)")
    }

    @Test func `a covering selection includes all keys of the covered one`() {
        #expect(KeySelection.all.covers(.tagged("t")) && KeySelection.all.covers(.prefix("a")))
        #expect(KeySelection.prefix("a").covers(.prefix("ab")))
        #expect(!KeySelection.prefix("ab").covers(.prefix("a")))
        #expect(KeySelection.tagged("t").covers(.tagged("t")))
        #expect(!KeySelection.tagged("t").covers(.tagged("u")))
        #expect(!KeySelection.prefix("a").covers(.all) && !KeySelection.tagged("t").covers(.prefix("a")))
        #expect(!KeySelection.glob("*").isFitForRule)
        #expect(!KeySelection.prefix(String(repeating: "a", count: 1025)).isFitForRule)
    }
}
