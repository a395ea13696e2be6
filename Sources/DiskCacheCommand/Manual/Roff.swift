// SPDX-License-Identifier: Apache-2.0

/// Text for the macros of man(7).
enum Roff {
    /// Returns text that is rendered unchanged within a line.
    ///
    /// A plain hyphen would be rendered as another character, which can't be pasted into a shell, and so would some quotes
    /// and accents.
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

    /// Returns text that is rendered unchanged as whole lines: no line is treated as a macro.
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

    /// Returns a paragraph with a hanging tag, which is already roff.
    static func item(_ tag: String, _ text: String) -> [String] {
        [".TP", guarded(tag), prose(text)]
    }

    /// Converts a help text: paragraphs are separated by empty lines; indented lines are examples, and stay unchanged.
    static func paragraphs(_ text: String) -> [String] {
        let blocks = text.split(separator: "\n", omittingEmptySubsequences: false).split(
            whereSeparator: \.isEmpty
        )
        return blocks.flatMap { block in [".PP"] + pieces(of: block).flatMap(lines(of:)) }
    }

    /// Splits a block into pieces that are all examples or all prose.
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

    /// Protects a line whose first character, a dot or a quote, would make it a macro.
    private static func guarded(_ line: String) -> String {
        line.first == "." || line.first == "'" || line.hasPrefix("\\(aq") ? "\\&" + line : line
    }
}
