// SPDX-License-Identifier: Apache-2.0

/// The header fields of a message: lines in their order, found by name whatever its case.
package struct HTTPFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// One line.
    package struct Line: Sendable, Equatable {
        /// As it was sent.
        package var name: String
        /// Without the white space around it.
        package var value: String
    }

    /// In the order of the message.
    package private(set) var lines: [Line] = []

    /// None.
    package init() {}

    /// With lines in this order; a name may come again.
    package init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// The values of all lines of this name, in their order.
    package func values(of name: String) -> [String] {
        let name = HTTPText.lowercased(name)
        return lines.filter { HTTPText.lowercased($0.name) == name }.map(\.value)
    }

    /// The value of the first line of this name.
    package func first(_ name: String) -> String? { values(of: name).first }

    /// Whether there is a line of this name.
    package func contains(_ name: String) -> Bool { first(name) != nil }

    /// All lines of this name as one value (RFC 9110, section 5.2); nil if there is none.
    package func combined(_ name: String) -> String? {
        let values = values(of: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The members of a list (RFC 9110, section 5.6.1) over all of its lines, without empty ones.
    package func members(of name: String) -> [String] { values(of: name).flatMap(HTTPText.members) }

    /// Whether there is `Pragma: no-cache` (RFC 9111, section 5.4).
    var hasPragmaNoCache: Bool {
        members(of: "Pragma").contains { HTTPText.lowercased($0) == "no-cache" }
    }

    /// Adds a line at the end.
    package mutating func add(_ name: String, _ value: String) {
        lines.append(Line(name: name, value: HTTPText.trimmed(value)))
    }

    /// Puts one line in the place of all of this name.
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

/// What the grammar of HTTP's fields has in common: ASCII, lists, quoted strings and numbers.
enum HTTPText {
    /// The largest number of seconds: what a larger one counts as (RFC 9111, section 1.2.2).
    static let mostSeconds = 2_147_483_648

    /// In lower case, of ASCII alone: names in other letters are different names.
    static func lowercased(_ text: String) -> String {
        String(decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Without spaces and tabs at both ends.
    static func trimmed(_ text: some StringProtocol) -> String {
        let bytes = Array(text.utf8)
        guard let first = bytes.firstIndex(where: { !isSpace($0) }),
            let last = bytes.lastIndex(where: { !isSpace($0) })
        else { return "" }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }

    /// With a space for each byte that ends a line, or that no value may have (RFC 9110, section 5.5).
    static func onOneLine(_ text: String) -> String {
        guard text.utf8.contains(where: isEnd) else { return text }
        return String(decoding: text.utf8.map { isEnd($0) ? 0x20 : $0 }, as: UTF8.self)
    }

    private static func isEnd(_ byte: UInt8) -> Bool { byte == 0x0D || byte == 0x0A || byte == 0 }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// The text between commas, but for commas in quoted strings; trimmed, without empty members.
    ///
    /// A quotation mark that none follows is a character like any other, so that it hides nothing.
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
                // Where one has no end, those after it have none either: without this, a long line takes
                // forever.
                if let end = endOfQuotedString(bytes, from: place) { place = end } else { mayQuote = false }
            }
            place += 1
        }
        return members.filter { !$0.isEmpty }
    }

    /// Where the quoted string ends that begins here; nil if none does.
    private static func endOfQuotedString(_ bytes: [UInt8], from begin: Int) -> Int? {
        guard bytes[begin] == UInt8(ascii: "\"") else { return nil }
        var place = begin + 1
        while place < bytes.count {
            if bytes[place] == UInt8(ascii: "\"") { return place }
            place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1
        }
        return nil
    }

    /// The content of a quoted string; nil if the text is not one as a whole.
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

    /// A number of seconds (delta-seconds), at most ``mostSeconds``; nil if the text is anything but digits.
    static func seconds(_ text: String) -> Int? {
        guard isDigits(text) else { return nil }
        return min(Int(text) ?? mostSeconds, mostSeconds)
    }

    /// Whether it consists of digits, of which there is at least one.
    static func isDigits(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// Whether it is a token (RFC 9110, section 5.6.2).
    static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) && byte < 0x80
                    || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
    }
}
