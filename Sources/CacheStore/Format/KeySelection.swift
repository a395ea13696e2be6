// SPDX-License-Identifier: Apache-2.0

/// The keys that a call applies to.
///
/// ```swift
/// try cache.removeAll(.prefix("thumbs/"))
/// for result in try cache.entries(.tagged("user:1")) { print(try result.get().size) }
/// ```
///
/// Keys are compared byte by byte, as UTF-8. A key that the cache does not store, because it is longer than 1 KiB or the
/// cache keeps digests only, is found only by tag and by ``all``.
public struct KeySelection: Sendable, Hashable {
    /// The criterion of the selection.
    package enum Form: Sendable {
        case all
        case prefix(String)
        case tagged(String)
        case glob(String)
    }

    package let form: Form

    /// All keys.
    public static var all: KeySelection { KeySelection(form: .all) }

    /// The keys that begin with `text`; all of them if it is empty.
    public static func prefix(_ text: String) -> KeySelection {
        text.isEmpty ? .all : KeySelection(form: .prefix(text))
    }

    /// The keys whose values were stored with this tag.
    public static func tagged(_ tag: String) -> KeySelection { KeySelection(form: .tagged(tag)) }

    /// The keys that match a pattern as a whole.
    ///
    /// `*` matches any characters, `?` one character, `[a-z]` one of these and `[!a-z]` any other; a backslash escapes the
    /// next character. A slash is an ordinary character.
    public static func glob(_ pattern: String) -> KeySelection { KeySelection(form: .glob(pattern)) }
}

extension KeySelection.Form: Hashable {
    /// Compares texts byte by byte: `String`'s `==` treats different spellings of a character as equal, but they are
    /// different keys.
    package static func == (one: Self, other: Self) -> Bool {
        one.kind == other.kind && one.text.utf8.elementsEqual(other.text.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        for byte in text.utf8 { hasher.combine(byte) }
    }

    private var kind: Int {
        switch self {
        case .all: 0
        case .prefix: 1
        case .tagged: 2
        case .glob: 3
        }
    }

    private var text: String {
        switch self {
        case .all: ""
        case .prefix(let text), .tagged(let text), .glob(let text): text
        }
    }
}

extension KeySelection {
    /// Returns whether the value with this record is selected; false if that depends on the key and the key is unknown.
    package func includes(_ record: Record) -> Bool {
        switch form {
        case .all: true
        case .prefix(let prefix): record.key?.utf8.starts(with: prefix.utf8) ?? false
        case .tagged(let tag):
            record.hasDetails && record.details.tags.contains { $0.utf8.elementsEqual(tag.utf8) }
        case .glob(let pattern): record.key.map { Glob.matches(pattern, $0) } ?? false
        }
    }

    /// Returns whether a value with this key can be selected.
    package func mayInclude(key: String) -> Bool {
        switch form {
        case .all, .tagged: true
        case .prefix(let prefix): key.utf8.starts(with: prefix.utf8)
        case .glob(let pattern): Glob.matches(pattern, key)
        }
    }

    /// Returns whether the value of `key` with this record, which need not contain the key, is selected.
    package func includes(_ record: Record, of key: String) -> Bool {
        if case .tagged = form { return includes(record) }
        return mayInclude(key: key)
    }

    /// Returns whether a removal or expiration must include the value with this record; true for a prefix if the key is
    /// unknown.
    ///
    /// To include a value unnecessarily only causes a miss; to omit one would be wrong.
    package func mayInclude(_ record: Record) -> Bool {
        if case .prefix = form, record.key == nil { return true }
        return includes(record)
    }

    /// Whether a rule can be made for the selection.
    ///
    /// A pattern would have to be matched in each read, and a long text would make the rules file long.
    var isFitForRule: Bool {
        switch form {
        case .all: true
        case .prefix(let text), .tagged(let text): text.utf8.count <= Record.longestKey
        case .glob: false
        }
    }

    /// Returns whether a rule for this selection applies to all values that a rule for `other` applies to.
    func covers(_ other: KeySelection) -> Bool {
        switch (form, other.form) {
        case (.all, _): true
        case (.prefix(let short), .prefix(let long)): long.utf8.starts(with: short.utf8)
        case (.tagged, .tagged): form == other.form
        default: false
        }
    }
}

/// Patterns as in glob(7), in which a character is a Unicode scalar.
private enum Glob {
    typealias Text = [Unicode.Scalar]

    /// Returns whether the whole text matches the pattern.
    ///
    /// - Complexity: O(*n* × *m*) at worst, in the lengths of both.
    static func matches(_ pattern: String, _ text: String) -> Bool {
        let (pattern, text) = (Text(pattern.unicodeScalars), Text(text.unicodeScalars))
        var (place, position) = (0, 0)
        // The index after the last star in the pattern, and the end of the text that this star matches so far. After a
        // mismatch, only the match of the last star has to be extended.
        var star: (place: Int, position: Int)?
        while true {
            if place < pattern.count, pattern[place] == "*" {
                place += 1
                star = (place, position)
                continue
            }
            if place == pattern.count, position == text.count { return true }
            if place < pattern.count, position < text.count,
                let next = step(pattern, place, over: text[position])
            {
                (place, position) = (next, position + 1)
                continue
            }
            guard let last = star, last.position < text.count else { return false }
            star = (last.place, last.position + 1)
            (place, position) = (last.place, last.position + 1)
        }
    }

    /// Returns the index after the part of the pattern that matches this character; nil if that part does not match.
    private static func step(_ pattern: Text, _ place: Int, over character: Unicode.Scalar) -> Int? {
        switch pattern[place] {
        case "?": return place + 1
        case "\\" where place + 1 < pattern.count:
            return pattern[place + 1] == character ? place + 2 : nil
        case "[":
            guard let set = CharacterSet(pattern, place) else { break }
            return set.includes(character) ? set.end : nil
        default: break
        }
        return pattern[place] == character ? place + 1 : nil
    }

    /// The characters in brackets.
    private struct CharacterSet {
        private var ranges: [ClosedRange<Unicode.Scalar>] = []
        private var isNegated = false
        /// The index after the closing bracket.
        private(set) var end: Int

        /// Parses the bracket at `place`; nil if it is not closed and is therefore an ordinary character.
        init?(_ pattern: Text, _ place: Int) {
            end = place + 1
            if end < pattern.count, pattern[end] == "!" || pattern[end] == "^" {
                isNegated = true
                end += 1
            }
            let first = end
            // A closing bracket that comes first belongs to the set.
            while end < pattern.count, pattern[end] != "]" || end == first {
                let low = pattern[end]
                if end + 2 < pattern.count, pattern[end + 1] == "-", pattern[end + 2] != "]" {
                    let high = pattern[end + 2]
                    if low <= high { ranges.append(low...high) }
                    end += 3
                } else {
                    ranges.append(low...low)
                    end += 1
                }
            }
            guard end < pattern.count else { return nil }
            end += 1
        }

        func includes(_ character: Unicode.Scalar) -> Bool {
            ranges.contains { $0.contains(character) } != isNegated
        }
    }
}
