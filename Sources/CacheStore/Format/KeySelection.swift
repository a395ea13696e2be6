// SPDX-License-Identifier: Apache-2.0

/// Which keys a call is about.
///
/// ```swift
/// try cache.removeAll(.prefix("thumbs/"))
/// for result in try cache.entries(.tagged("user:1")) { print(try result.get().size) }
/// ```
///
/// Keys are compared byte by byte, as UTF-8. A key that the cache does not know, as it is longer than 1 KiB or the cache
/// keeps digests only, is found by tag and by ``all`` alone.
public struct KeySelection: Sendable, Hashable {
    /// By what they are chosen.
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
    /// `*` stands for any characters, `?` for one, `[a-z]` for one of these and `[!a-z]` for any other; a backslash takes
    /// its meaning from the character behind it. A slash is a character like any other.
    public static func glob(_ pattern: String) -> KeySelection { KeySelection(form: .glob(pattern)) }
}

extension KeySelection.Form: Hashable {
    /// Compares texts byte by byte: `String`'s own `==` holds for spellings of a character that are different keys.
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
    /// Whether the value with this record is one of them; false where only the key could tell and it is not known.
    package func includes(_ record: Record) -> Bool {
        switch form {
        case .all: true
        case .prefix(let prefix): record.key?.utf8.starts(with: prefix.utf8) ?? false
        case .tagged(let tag):
            record.hasDetails && record.details.tags.contains { $0.utf8.elementsEqual(tag.utf8) }
        case .glob(let pattern): record.key.map { Glob.matches(pattern, $0) } ?? false
        }
    }

    /// Whether a value with this key can be one of them.
    package func mayInclude(key: String) -> Bool {
        switch form {
        case .all, .tagged: true
        case .prefix(let prefix): key.utf8.starts(with: prefix.utf8)
        case .glob(let pattern): Glob.matches(pattern, key)
        }
    }

    /// Whether the value of `key` with this record, which need not have the key, is one of them.
    package func includes(_ record: Record, of key: String) -> Bool {
        if case .tagged = form { return includes(record) }
        return mayInclude(key: key)
    }

    /// The same for what is to be removed or to expire: a value whose key is not known may have any prefix.
    ///
    /// A value too many is a miss; one too few would be wrong.
    package func mayInclude(_ record: Record) -> Bool {
        if case .prefix = form, record.key == nil { return true }
        return includes(record)
    }

    /// Whether a rule can be made for it: a pattern would have to be matched in each read, and what is long in the file.
    var isFitForRule: Bool {
        switch form {
        case .all: true
        case .prefix(let text), .tagged(let text): text.utf8.count <= RecordCodec.longestKey
        case .glob: false
        }
    }

    /// Whether all that a rule for `other` is meant for is meant here as well.
    func covers(_ other: KeySelection) -> Bool {
        switch (form, other.form) {
        case (.all, _): true
        case (.prefix(let short), .prefix(let long)): long.utf8.starts(with: short.utf8)
        case (.tagged, .tagged): form == other.form
        default: false
        }
    }
}

/// Patterns as glob(7) has them, of characters in the sense of Unicode's scalars.
private enum Glob {
    typealias Text = [Unicode.Scalar]

    /// - Complexity: O(*n* × *m*) at worst, in the lengths of both.
    static func matches(_ pattern: String, _ text: String) -> Bool {
        let (pattern, text) = (Text(pattern.unicodeScalars), Text(text.unicodeScalars))
        var (place, position) = (0, 0)
        // Behind the last star, and where what it stands for ends so far: of several stars only the last has to give way.
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

    /// The place behind the part of the pattern that stands for this character; nil: it does not.
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

    /// What stands in brackets.
    private struct CharacterSet {
        private var ranges: [ClosedRange<Unicode.Scalar>] = []
        private var isNegated = false
        /// The place behind the closing bracket.
        private(set) var end: Int

        /// nil where nothing closes the bracket at `place`, which then stands for itself.
        init?(_ pattern: Text, _ place: Int) {
            end = place + 1
            if end < pattern.count, pattern[end] == "!" || pattern[end] == "^" {
                isNegated = true
                end += 1
            }
            let first = end
            // A closing bracket that comes first is one of them.
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
