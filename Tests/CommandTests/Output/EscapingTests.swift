// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct EscapingTests {
    @Test(arguments: [
        ("plain", "plain"), ("", ""), ("ünï✓🙂 ", "ünï✓🙂 "), ("a\nb", "a\\nb"), ("a\tb\rc", "a\\tb\\rc"),
        ("a\r\nb", "a\\r\\nb"), ("back\\slash", "back\\\\slash"), ("\u{1B}[31m", "\\x1b[31m"),
        ("\u{0}\u{7F}", "\\x00\\x7f"), ("\u{9B}", "\\xc2\\x9b"), ("e\u{301}\n", "e\u{301}\\n"),
        ("a\u{202E}b", "a\\xe2\\x80\\xaeb"), ("a\u{2028}b\u{61C}", "a\\xe2\\x80\\xa8b\\xd8\\x9c"),
        ("👩‍👩‍👧‍👦👁️‍🗨️", "👩‍👩‍👧‍👦👁️‍🗨️"), ("نامه‌ای", "نامه‌ای"),
        ("a\u{200D}b\u{200D}", "a\\xe2\\x80\\x8db\\xe2\\x80\\x8d"),
        ("👩\u{200D}\u{202E}", "👩\\xe2\\x80\\x8d\\xe2\\x80\\xae"),
    ])
    func `control characters and backslashes are written as in C`(text: String, escaped: String) {
        #expect(text.escaped == escaped)
    }

    @Test func `different texts are escaped differently`() {
        let texts = ["\n", "\\n", "\\\n", "\\\\n", "\u{1B}", "\\x1b"]
        #expect(Set(texts.map(\.escaped)).count == texts.count)
    }

    @Test func `harmless keeps line breaks, and escaped text is not escaped again`() {
        #expect("a\u{1B}b\r\nc\td\n".harmless == "a\\x1bb\\r\nc\\td\n")
        let texts = [
            "\u{1B}\\x1b", "👩\u{200D}\u{200D}👩\u{2066}", "\u{85}e\u{301}\u{7F}\u{E0067}🏴\u{E0067}\u{E007F}",
        ]
        for text in texts {
            let once = text.singleLine
            #expect(once.harmless == once)
            #expect(once.escapedJSON == once)
        }
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

    @Test func `missing cells are empty, and lines have no trailing spaces`() {
        var table = Table(.left, .left, .left)
        table.add("a", "b", "c")
        table.add("a")
        #expect(table.text == "a  b  c\na\n")
    }

    @Test func `column widths count characters, not bytes`() {
        var table = Table(.left, .left)
        table.add("üb", "x")
        table.add("ab", "y")
        #expect(table.text == "üb  x\nab  y\n")
    }

    @Test(arguments: [
        ("", 0), ("abc", 3), ("ü", 1), ("e\u{301}", 1), ("🙂", 2), ("👩‍👩‍👧‍👦", 2), ("❤️", 2), ("❤", 1),
        ("漢字", 4), ("한글", 4), ("ｱ", 1), ("Ａ", 2), ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", 2),
    ])
    func `wide characters take two columns`(text: String, columns: Int) {
        #expect(text.columns == columns)
    }

    @Test(arguments: [
        ("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("漢字漢字", 6, "漢字…"), ("漢字漢字", 5, "漢字…"),
        ("👩‍👩‍👧‍👦ab", 3, "👩‍👩‍👧‍👦…"), ("ab", 1, "…"), ("ab", 0, ""),
    ])
    func `text that is too long for a line ends in an ellipsis`(text: String, limit: Int, fitted: String) {
        #expect(text.fitted(to: limit) == fitted)
        #expect(fitted.columns <= limit)
        #expect(text.fitted(to: nil) == text)
    }

    @Test func `a cell that is too wide shifts the following cells`() {
        #expect(Table.line(["12345", "x"], [.right, .left], widths: [3, 1]) == "12345  x\n")
    }
}
