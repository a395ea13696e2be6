// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import diskcache

@Suite(.takesTurns) struct EscapingTests {
    @Test(arguments: [
        ("plain", "plain"), ("", ""), ("ünï✓🙂 ", "ünï✓🙂 "), ("a\nb", "a\\nb"), ("a\tb\rc", "a\\tb\\rc"),
        ("a\r\nb", "a\\r\\nb"), ("back\\slash", "back\\\\slash"), ("\u{1B}[31m", "\\x1b[31m"),
        ("\u{0}\u{7F}", "\\x00\\x7f"), ("\u{9B}", "\\xc2\\x9b"), ("e\u{301}\n", "e\u{301}\\n"),
        ("a\u{202E}b", "a\\xe2\\x80\\xaeb"),
    ])
    func `control characters and backslashes are written as in C`(text: String, escaped: String) {
        #expect(text.escaped == escaped)
    }

    @Test func `different texts never look the same`() {
        let texts = ["\n", "\\n", "\\\n", "\\\\n", "\u{1B}", "\\x1b"]
        #expect(Set(texts.map(\.escaped)).count == texts.count)
    }

    @Test func `messages keep their backslashes`() {
        #expect("C:\\x\ny".singleLine == "C:\\x\\ny")
    }
}

@Suite(.takesTurns) struct TableTests {
    @Test func `columns are as wide as their widest cell`() {
        var table = Table(.left, .right)
        table.add("a", "1")
        table.add("long", "1000")
        #expect(table.text == "a        1\nlong  1000\n")
    }

    @Test func `cells that are missing are empty and lines have no spaces at the end`() {
        var table = Table(.left, .left, .left)
        table.add("a", "b", "c")
        table.add("a")
        #expect(table.text == "a  b  c\na\n")
    }

    @Test func `characters count, not bytes`() {
        var table = Table(.left, .left)
        table.add("ü🙂", "x")
        table.add("ab", "y")
        #expect(table.text == "ü🙂  x\nab  y\n")
    }

    @Test func `a cell that is too wide pushes the rest`() {
        #expect(Table.line(["12345", "x"], [.right, .left], widths: [3, 1]) == "12345  x\n")
    }
}
