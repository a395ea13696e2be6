// SPDX-License-Identifier: Apache-2.0

/// Text as the macros of man(7) take it.
enum Roff {
    /// Text that comes out as it is, in the midst of a line.
    ///
    /// A plain hyphen would come out as another character, which nobody can paste into a shell, and so would some
    /// quotes and accents.
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

    /// The same as lines of their own: none is taken for a macro.
    static func line(_ text: String) -> String {
        guarded(escaped(text))
    }

    /// Lines of prose: what stands between two backticks comes out in bold.
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

    /// A paragraph that hangs from a tag, which is roff already.
    static func item(_ tag: String, _ text: String) -> [String] {
        [".TP", guarded(tag), prose(text)]
    }

    /// A help text: paragraphs between empty lines; indented lines are examples, and stay as they are.
    static func paragraphs(_ text: String) -> [String] {
        let blocks = text.split(separator: "\n", omittingEmptySubsequences: false).split(
            whereSeparator: \.isEmpty
        )
        return blocks.flatMap { block in [".PP"] + pieces(of: block).flatMap(lines(of:)) }
    }

    /// Lines that are all examples, or all prose.
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

    /// A dot or a quote at the beginning would make it a macro.
    private static func guarded(_ line: String) -> String {
        line.first == "." || line.first == "'" || line.hasPrefix("\\(aq") ? "\\&" + line : line
    }
}
