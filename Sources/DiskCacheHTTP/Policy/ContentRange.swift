// SPDX-License-Identifier: Apache-2.0

/// A Content-Range field (RFC 9110, section 14.4).
package struct ContentRange: Sendable, Equatable {
    /// The range of the bytes; nil for `*`, which means no bytes.
    package var bytes: Range<Int>?
    /// The length of the whole body; nil if unknown.
    package var length: Int?

    /// Returns nil for an invalid value; a response with such a value must not be stored or combined.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, HTTPText.lowercased(String(words[0])) == "bytes" else { return nil }
        let sides = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let length = HTTPText.isDigits(sides[1]) ? Int(sides[1]) : nil
        guard length != nil || sides[1] == "*" else { return nil }
        self.length = length
        if sides[0] == "*" {
            guard length != nil else { return nil }
            return
        }
        let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, ends.allSatisfy({ HTTPText.isDigits($0) }), let first = Int(ends[0]),
            let last = Int(ends[1]), first <= last, last < (length ?? .max)
        else { return nil }
        bytes = first..<(last + 1)
    }

    package init(bytes: Range<Int>?, length: Int?) {
        self.bytes = bytes
        self.length = length
    }

    /// The value of the header field.
    package var text: String {
        let total = length.map(String.init) ?? "*"
        return bytes.map { "bytes \($0.lowerBound)-\($0.upperBound - 1)/\(total)" } ?? "bytes */\(total)"
    }
}
