// SPDX-License-Identifier: Apache-2.0

import Platform

/// Colours for what a person should find at once; by their numbers in ECMA-48 SGR.
enum Colour: String {
    case bold = "1"
    case red = "31"
    case green = "32"
    case yellow = "33"

    /// The text in this colour, whatever it is written to; a newline at its end stays outside.
    func paint(_ text: String) -> String {
        let line = text.hasSuffix("\n") ? text.dropLast() : text[...]
        return "\u{1B}[\(rawValue)m\(line)\u{1B}[0m" + text.dropFirst(line.count)
    }

    /// The text in this colour if colours are wanted on this descriptor, else as it is.
    func ifWanted(_ text: String, on descriptor: Int32) -> String {
        Self.isWanted(on: descriptor) ? paint(text) : text
    }

    /// Whether colours are wanted on this descriptor: on a terminal that can show them, unless `$NO_COLOR` is set to
    /// anything (no-color.org).
    static func isWanted(on descriptor: Int32) -> Bool {
        isWanted(
            isTerminal: Terminal.isInteractive(descriptor),
            refusal: CurrentProcess.environmentBytes("NO_COLOR"),
            terminal: CurrentProcess.environmentBytes("TERM")
        )
    }

    /// - Parameters:
    ///   - refusal: `$NO_COLOR`, of which an empty one says nothing.
    ///   - terminal: `$TERM`.
    static func isWanted(isTerminal: Bool, refusal: [UInt8]?, terminal: [UInt8]?) -> Bool {
        guard isTerminal, refusal?.isEmpty ?? true, let terminal else { return false }
        return terminal != Array("dumb".utf8)
    }
}
