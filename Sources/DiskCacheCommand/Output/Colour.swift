// SPDX-License-Identifier: Apache-2.0

import Platform

/// Colors that highlight important text, with their numbers in ECMA-48 SGR.
package enum Colour: String {
    case bold = "1"
    case red = "31"
    case green = "32"
    case yellow = "33"

    /// Returns the text in this color, whatever its destination; a trailing newline is not colored.
    func paint(_ text: String) -> String {
        let line = text.hasSuffix("\n") ? text.dropLast() : text[...]
        return "\u{1B}[\(rawValue)m\(line)\u{1B}[0m" + text.dropFirst(line.count)
    }

    /// Returns the text in this color if the descriptor should get colors, otherwise unchanged.
    func ifWanted(_ text: String, on descriptor: Int32) -> String {
        Self.isWanted(on: descriptor) ? paint(text) : text
    }

    /// Whether a descriptor should get colors.
    ///
    /// It should if it is a terminal that can show them, unless `$NO_COLOR` is set (no-color.org).
    static func isWanted(on descriptor: Int32) -> Bool {
        isWanted(
            isTerminal: Terminal.isInteractive(descriptor),
            refusal: CurrentProcess.environmentBytes("NO_COLOR"),
            terminal: CurrentProcess.environmentBytes("TERM")
        )
    }

    /// Whether output should have colors.
    ///
    /// - Parameters:
    ///   - refusal: `$NO_COLOR`; an empty value is ignored.
    ///   - terminal: `$TERM`.
    static func isWanted(isTerminal: Bool, refusal: [UInt8]?, terminal: [UInt8]?) -> Bool {
        guard isTerminal, refusal?.isEmpty ?? true, let terminal else { return false }
        return terminal != Array("dumb".utf8)
    }
}
