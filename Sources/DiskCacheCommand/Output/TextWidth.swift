// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The number of terminal columns that the text occupies: two per wide character (Chinese, Japanese, Korean, emoji).
    var columns: Int {
        utf8.allSatisfy { $0 < 0x80 } ? utf8.count : reduce(0) { $0 + $1.columns }
    }

    /// Returns the text, truncated with "…" if it is wider than `limit` columns; nil for no limit.
    func fitted(to limit: Int?) -> String {
        guard let limit, columns > limit else { return self }
        var (text, width) = ("", 1)
        for character in self {
            width += character.columns
            if width > limit { break }
            text.append(character)
        }
        return limit > 0 ? text + "…" : ""
    }
}

extension Character {
    /// The number of columns, from Unicode's East Asian Width (UAX #11), simplified to whole blocks, and emoji
    /// presentation (UTS #51).
    fileprivate var columns: Int {
        guard let first = unicodeScalars.first else { return 0 }
        // U+FE0F selects the emoji presentation of a character that also has a text presentation.
        if first.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}") { return 2 }
        switch first.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
            0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
            return 2
        default: return first.properties.generalCategory == .nonspacingMark ? 0 : 1
        }
    }
}
