// SPDX-License-Identifier: Apache-2.0

/// Text for the macros of man(7).
enum Roff {
    /// Returns text that roff renders unchanged within a line.
    ///
    /// Unescaped, a hyphen, some quotes and some accents would be rendered as other characters, which can't be pasted
    /// into a shell.
    static func escaped(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "\"": result += "\\(dq"
            case "`": result += "\\(ga"
            case "^": result += "\\(ha"
            case "~": result += "\\(ti"
            case "…": result += "..."
            case _ where scalar.isASCII: result.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "\\[u\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)]"
            }
        }
    }

    /// Returns text that roff renders unchanged as a whole line: it is not treated as a macro.
    static func line(_ text: String) -> String {
        guarded(escaped(text))
    }

    /// Returns lines of prose, with text between two backticks in bold.
    static func prose(_ text: String) -> String {
        let parts = text.split(separator: "`", omittingEmptySubsequences: false).map(String.init)
        let roff =
            parts.count % 2 == 1
            ? parts.enumerated().map { $0.offset % 2 == 1 ? bold($0.element) : escaped($0.element) }.joined()
            : escaped(text)
        return roff.split(separator: "\n").map { guarded(String($0)) }.joined(separator: "\n")
    }

    static func bold(_ text: String) -> String { "\\fB\(escaped(text))\\fR" }

    static func italic(_ text: String) -> String { "\\fI\(escaped(text))\\fR" }

    /// Returns a paragraph with a hanging tag; the tag is already roff.
    static func item(_ tag: String, _ text: String) -> [String] {
        [".TP", guarded(tag), prose(text)]
    }

    /// Converts a help text: empty lines separate paragraphs; indented lines are examples, which stay unchanged.
    static func paragraphs(_ text: String) -> [String] {
        let blocks = text.split(separator: "\n", omittingEmptySubsequences: false).split(
            whereSeparator: \.isEmpty
        )
        return blocks.flatMap { block in [".PP"] + pieces(of: block).flatMap(lines(of:)) }
    }

    /// Splits a block into pieces that consist only of examples or only of prose.
    private static func pieces(of block: ArraySlice<Substring>) -> [[Substring]] {
        block.reduce(into: []) { pieces, line in
            if let last = pieces.last?.last, last.hasPrefix("  ") == line.hasPrefix("  ") {
                pieces[pieces.count - 1].append(line)
            } else {
                pieces.append([line])
            }
        }
    }

    private static func lines(of piece: [Substring]) -> [String] {
        guard piece[0].hasPrefix("  ") else { return [prose(piece.joined(separator: "\n"))] }
        return [".RS 4", ".EX"] + piece.map { line(String($0.dropFirst(2))) } + [".EE", ".RE"]
    }

    /// Protects a line whose first character, a dot or a quote, would turn it into a macro.
    private static func guarded(_ line: String) -> String {
        line.first == "." || line.first == "'" || line.hasPrefix("\\(aq") ? "\\&" + line : line
    }
}
