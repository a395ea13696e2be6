// SPDX-License-Identifier: Apache-2.0

package import Transport

/// The header fields of a message, in order; lookups by name ignore case.
package struct HTTPFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// The field lines in the order of the message; names keep their case, values have no surrounding white space.
    package private(set) var lines: [HeaderField] = []

    /// Creates an empty list of fields.
    package init() {}

    /// Creates lines in this order; names may be repeated.
    package init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// Returns the values of all lines of this name, in order.
    package func values(of name: String) -> [String] {
        let name = HTTPText.lowercased(name)
        return lines.filter { HTTPText.lowercased($0.name) == name }.map(\.value)
    }

    /// Returns the value of the first line of this name, or nil if there is none.
    package func first(_ name: String) -> String? { values(of: name).first }

    /// Returns whether there is a line of this name.
    package func contains(_ name: String) -> Bool { first(name) != nil }

    /// Returns all values of this name, joined by commas (RFC 9110, section 5.2), or nil if there are none.
    package func combined(_ name: String) -> String? {
        let values = values(of: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Returns the members of a list field (RFC 9110, section 5.6.1) from all of its lines, without empty members.
    package func members(of name: String) -> [String] { values(of: name).flatMap(HTTPText.members) }

    /// Whether the fields include `Pragma: no-cache` (RFC 9111, section 5.4).
    var hasPragmaNoCache: Bool {
        members(of: "Pragma").contains { HTTPText.lowercased($0) == "no-cache" }
    }

    /// Appends a line.
    package mutating func add(_ name: String, _ value: String) {
        lines.append(HeaderField(name, HTTPText.trimmed(value)))
    }

    /// Replaces all lines of this name with one line.
    package mutating func set(_ name: String, _ value: String) {
        remove([name])
        add(name, value)
    }

    /// Removes all lines of these names.
    package mutating func remove(_ names: some Sequence<String>) {
        let names = Set(names.map(HTTPText.lowercased))
        lines.removeAll { names.contains(HTTPText.lowercased($0.name)) }
    }
}

/// The common syntax of HTTP fields: ASCII text, lists, quoted strings and numbers.
enum HTTPText {
    /// The maximum number of seconds; larger numbers count as this one (RFC 9111, section 1.2.2).
    static let mostSeconds = 2_147_483_648

    /// Converts ASCII letters to lower case, and leaves all other bytes unchanged.
    static func lowercased(_ text: String) -> String {
        String(decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Removes leading and trailing spaces and tabs.
    static func trimmed(_ text: some StringProtocol) -> String {
        let bytes = Array(text.utf8)
        guard let first = bytes.firstIndex(where: { !isSpace($0) }),
            let last = bytes.lastIndex(where: { !isSpace($0) })
        else { return "" }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }

    /// Replaces CR, LF and NUL, which field values must not contain, with spaces (RFC 9110, section 5.5).
    static func onOneLine(_ text: String) -> String {
        guard text.utf8.contains(where: isEnd) else { return text }
        return String(decoding: text.utf8.map { isEnd($0) ? 0x20 : $0 }, as: UTF8.self)
    }

    private static func isEnd(_ byte: UInt8) -> Bool { byte == 0x0D || byte == 0x0A || byte == 0 }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Splits a list at commas outside quoted strings, trims its members, and drops empty ones.
    ///
    /// An opening quotation mark without a closing one is an ordinary character, so that it can't hide later members.
    static func members(_ text: String) -> [String] {
        let bytes = Array(text.utf8)
        var members: [String] = []
        var begin = 0
        var place = 0
        var mayQuote = true
        while place <= bytes.count {
            if place == bytes.count || bytes[place] == UInt8(ascii: ",") {
                members.append(trimmed(String(decoding: bytes[begin..<place], as: UTF8.self)))
                begin = place + 1
            } else if mayQuote, bytes[place] == UInt8(ascii: "\"") {
                // If one quoted string has no end, later ones have none either. Without this check, a long line takes
                // quadratic time.
                if let end = endOfQuotedString(bytes, from: place) { place = end } else { mayQuote = false }
            }
            place += 1
        }
        return members.filter { !$0.isEmpty }
    }

    /// Returns the index of the closing quotation mark of the string that begins at `begin`, or nil if there is none.
    private static func endOfQuotedString(_ bytes: [UInt8], from begin: Int) -> Int? {
        guard bytes[begin] == UInt8(ascii: "\"") else { return nil }
        var place = begin + 1
        while place < bytes.count {
            if bytes[place] == UInt8(ascii: "\"") { return place }
            place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1
        }
        return nil
    }

    /// Returns the content of a quoted string, or nil if the text is not exactly one quoted string.
    static func unquoted(_ text: String) -> String? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 2, endOfQuotedString(bytes, from: 0) == bytes.count - 1 else { return nil }
        var content: [UInt8] = []
        var place = 1
        while place < bytes.count - 1 {
            if bytes[place] == UInt8(ascii: "\\") { place += 1 }
            content.append(bytes[place])
            place += 1
        }
        return String(decoding: content, as: UTF8.self)
    }

    /// Parses a number of seconds (delta-seconds), clamped to ``mostSeconds``; returns nil if the text is not all digits.
    static func seconds(_ text: String) -> Int? {
        guard isDigits(text) else { return nil }
        return min(Int(text) ?? mostSeconds, mostSeconds)
    }

    /// Returns whether the text consists of one or more digits.
    static func isDigits(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Returns whether the text is a token (RFC 9110, section 5.6.2).
    static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) && byte < 0x80
                    || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
    }
}
