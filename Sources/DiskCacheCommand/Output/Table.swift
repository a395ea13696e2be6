// SPDX-License-Identifier: Apache-2.0

/// Rows of text in aligned columns.
struct Table {
    /// How a column is aligned.
    enum Alignment {
        case left, right
    }

    private let columns: [Alignment]
    private var rows: [[String]] = []

    init(_ columns: Alignment...) {
        self.columns = columns
    }

    /// Adds a row; missing cells are empty.
    mutating func add(_ cells: String...) {
        rows.append(cells + Array(repeating: "", count: max(0, columns.count - cells.count)))
    }

    /// The rows as lines, with two spaces between columns and no trailing spaces.
    var text: String {
        let widths = columns.indices.map { column in rows.map { $0[column].columns }.max() ?? 0 }
        return rows.map { Self.line($0, columns, widths: widths) }.joined()
    }

    /// Returns a line with a key as the last cell, whose trailing spaces are kept.
    static func line(_ cells: [String], key: String, _ columns: [Alignment], widths: [Int]) -> String {
        line(cells + ["|"], columns + [.left], widths: widths + [0]).dropLast(2) + key.escaped + "\n"
    }

    /// Returns one line.
    ///
    /// A cell that is wider than its column pushes the following ones to the right.
    static func line(_ cells: [String], _ columns: [Alignment], widths: [Int]) -> String {
        var line = ""
        for (index, cell) in cells.enumerated() {
            let gap = String(repeating: " ", count: max(0, widths[index] - cell.columns))
            line += (index > 0 ? "  " : "") + (columns[index] == .right ? gap + cell : cell + gap)
        }
        while line.last == " " { line.removeLast() }
        return line + "\n"
    }
}
