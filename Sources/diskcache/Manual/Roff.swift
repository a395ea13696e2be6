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

    /// A line of prose: what stands between two backticks comes out in bold.
    static func prose(_ text: String) -> String {
        let parts = text.split(separator: "`", omittingEmptySubsequences: false).map(String.init)
        guard parts.count % 2 == 1 else { return line(text) }
        return guarded(
            parts.enumerated().map { $0.offset % 2 == 1 ? bold($0.element) : escaped($0.element) }.joined()
        )
    }

    static func bold(_ text: String) -> String { "\\fB\(escaped(text))\\fR" }

    static func italic(_ text: String) -> String { "\\fI\(escaped(text))\\fR" }

    /// A macro, its arguments as they are.
    static func macro(_ name: String, _ arguments: String...) -> String {
        "." + ([name] + arguments.map { "\"\(escaped($0))\"" }).joined(separator: " ")
    }

    /// A paragraph that hangs from a tag, which is roff already.
    static func item(_ tag: String, _ text: String) -> [String] {
        [".TP", guarded(tag), prose(text)]
    }

    /// A help text: paragraphs between empty lines; indented lines are examples, and stay as they are.
    static func paragraphs(_ text: String) -> [String] {
        var lines: [String] = []
        var isExample = false
        for block in text.split(separator: "\n", omittingEmptySubsequences: false).split(
            whereSeparator: \.isEmpty
        ) {
            lines.append(".PP")
            for line in block {
                if line.hasPrefix("  ") != isExample {
                    lines += isExample ? [".EE", ".RE"] : [".RS 4", ".EX"]
                    isExample.toggle()
                }
                lines.append(isExample ? self.line(String(line.dropFirst(2))) : prose(String(line)))
            }
            if isExample { lines += [".EE", ".RE"] }
            isExample = false
        }
        return lines
    }

    /// A dot or a quote at the beginning would make it a macro.
    private static func guarded(_ line: String) -> String {
        line.first == "." || line.first == "'" || line.hasPrefix("\\(aq") ? "\\&" + line : line
    }
}
