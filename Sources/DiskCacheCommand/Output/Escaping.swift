// SPDX-License-Identifier: Apache-2.0

import Platform

extension String {
    /// The text on one line, with control and format characters and backslashes escaped.
    ///
    /// The escapes are those of C (`\n`, `\t`, `\r`, `\\`, otherwise `\x` and two digits for each byte); all other
    /// characters are unchanged. So each key takes one line, and no key can control the terminal.
    var escaped: String {
        escaping(backslashes: true) { $0.escape }
    }

    /// The text on one line for messages, escaped like ``escaped`` but with unchanged backslashes.
    package var singleLine: String {
        escaping { $0.escape }
    }

    /// The text escaped like ``singleLine``, except that newlines are kept.
    ///
    /// ``Output`` applies this to all text, in case that a caller forgot to escape. Escaped text does not change.
    var harmless: String {
        unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
            .map { String($0).singleLine }.joined(separator: "\n")
    }

    /// The text with those characters escaped for JSON, as `\u` and four digits (RFC 8259).
    var escapedJSON: String {
        if utf8.span.isPlainASCII { return self }
        return escaping { scalar in
            if scalar == "\n" { return "\n" }
            return String(scalar).utf16.map { unit in
                let digits = String(unit, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }.joined()
        }
    }

    private func escaping(backslashes: Bool = false, as form: (Unicode.Scalar) -> String) -> String {
        let scalars = Array(unicodeScalars)
        var text = ""
        for (index, scalar) in scalars.enumerated() {
            let previous = index > 0 ? scalars[index - 1] : nil
            let next = index + 1 < scalars.count ? scalars[index + 1] : nil
            if backslashes && scalar == "\\" || !scalar.isHarmless(after: previous, before: next) {
                text += form(scalar)
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

extension Span<UInt8> {
    /// Whether the bytes are only printable ASCII, spaces and newlines, as in most lines, so that nothing needs escaping.
    var isPlainASCII: Bool {
        for index in indices where !(0x20..<0x7F ~= self[index] || self[index] == UInt8(ascii: "\n")) {
            return false
        }
        return true
    }
}

extension Unicode.Scalar {
    /// Whether a terminal only displays the character, visibly.
    ///
    /// C0, DEL and C1 are excluded, because terminals interpret them, and so are U+2028 and U+2029, which end lines.
    /// Format characters (Cf) such as U+202E are excluded, because they are invisible but change the text around them.
    /// Two kinds of them are allowed where they are needed: joiners, in the scripts from Arabic to those of India and in
    /// emoji; and tags, in the flags of regions.
    func isHarmless(after previous: Unicode.Scalar?, before next: Unicode.Scalar?) -> Bool {
        if value < 0x7F { return value >= 0x20 }
        // Such a code point stands for a byte of a path.
        if String(self).hasForeignBytes { return false }
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return false
        case .format: break
        default: return true
        }
        switch value {
        case 0x200C, 0x200D: return previous?.isJoined ?? false && next?.isJoined ?? false
        case 0xE0020...0xE007F: return previous.map { $0.value == 0x1F3F4 || $0.isTag } ?? false
        default: return false
        }
    }

    private var isTag: Bool { 0xE0020...0xE007F ~= value }

    /// Whether a joiner may follow or precede this character: it belongs to those scripts, or may be part of an emoji.
    ///
    /// No emoji has a lower number than the arrows.
    private var isJoined: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .format: false
        default: 0x0600...0x1CFF ~= value || value >= 0x2190
        }
    }

    fileprivate var escape: String {
        switch self {
        case "\n": "\\n"
        case "\t": "\\t"
        case "\r": "\\r"
        case "\\": "\\\\"
        default: String(self).pathBytes.map { "\\x" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
    }
}
