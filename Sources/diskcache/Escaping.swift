// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text on one line: control and format characters and backslashes as C writes them (`\n`, `\t`, `\r`, `\\`,
    /// else `\x` and two digits for each byte), all others as they are.
    ///
    /// One line is one key then, and no key can speak to the terminal.
    var escaped: String {
        escaping { $0 == "\\" || $0.isControl }
    }

    /// The text with control and format characters escaped and backslashes left: for messages.
    var singleLine: String {
        escaping(\.isControl)
    }

    private func escaping(_ mustGo: (Unicode.Scalar) -> Bool) -> String {
        guard unicodeScalars.contains(where: mustGo) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if mustGo(scalar) {
                text += scalar.escape
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

extension Unicode.Scalar {
    /// C0, DEL and C1: what terminals act upon; and format characters (Cf), which are not seen themselves
    /// but turn the text around them, such as U+202E.
    fileprivate var isControl: Bool {
        value < 0x20 || 0x7F...0x9F ~= value || properties.generalCategory == .format
    }

    fileprivate var escape: String {
        switch self {
        case "\n": "\\n"
        case "\t": "\\t"
        case "\r": "\\r"
        case "\\": "\\\\"
        default: String(self).utf8.map { "\\x" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
    }
}
