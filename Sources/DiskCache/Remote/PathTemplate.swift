// SPDX-License-Identifier: Apache-2.0

package import CacheStore

/// The template of a path on a server, which contains fields, such as `/cas/{digest}`.
///
/// `{digest}` and `{key}` are the 64 hexadecimal digits of the requested digest, `{key:2}` the first two of them,
/// `{namespace}` the name of the namespace. All other text is literal: printable ASCII, already percent-encoded. A query
/// (`?team=1`) may follow the path.
package struct PathTemplate: Sendable, Hashable, CustomStringConvertible {
    private enum Part: Hashable {
        case text(String)
        /// This many digits from the start of the digest.
        case digits(Int)
        case namespace
    }

    package let description: String
    private let parts: [Part]

    /// Parses a template.
    ///
    /// - Returns: nil if a field is unknown or not closed, if no field has all 64 digits, or if the text does not begin
    ///   with `/`, has a component `.` or `..`, has bytes that a path can't have, or is longer than 1,024 bytes.
    package init?(_ text: String) {
        guard text.utf8.first == UInt8(ascii: "/"), text.utf8.count <= 1024,
            let parts = Self.parts(of: text), parts.contains(.digits(64))
        else { return nil }
        let steps = text.prefix { $0 != "?" }.split(separator: "/")
        guard !steps.contains(where: { $0 == "." || $0 == ".." }) else { return nil }
        description = text
        self.parts = parts
    }

    /// Whether the path contains the namespace.
    package var hasNamespace: Bool { parts.contains(.namespace) }

    /// Returns the path, which begins with `/`, with the query if the template has one.
    package func path(for digest: Digest, namespace: String) -> String {
        let digits = digest.description
        var path = ""
        for part in parts {
            switch part {
            case .text(let text): path += text
            case .digits(let count): path += digits.prefix(count)
            case .namespace: path += namespace
            }
        }
        return path
    }

    private static func parts(of text: String) -> [Part]? {
        var parts: [Part] = []
        var rest = Substring(text)
        while !rest.isEmpty {
            let plain = rest.prefix { $0 != "{" && $0 != "}" }
            guard plain.utf8.allSatisfy(isAllowed) else { return nil }
            if !plain.isEmpty { parts.append(.text(String(plain))) }
            rest = rest.dropFirst(plain.count)
            guard let brace = rest.first else { break }
            guard brace == "{", let end = rest.firstIndex(of: "}"),
                let part = field(rest[rest.index(after: rest.startIndex)..<end])
            else { return nil }
            parts.append(part)
            rest = rest[rest.index(after: end)...]
        }
        return parts
    }

    private static func field(_ text: Substring) -> Part? {
        if text == "namespace" { return .namespace }
        let halves = text.split(separator: ":", omittingEmptySubsequences: false)
        guard halves.count <= 2, halves[0] == "digest" || halves[0] == "key" else { return nil }
        guard halves.count == 2 else { return .digits(64) }
        guard let count = Int(halves[1]), (1...64).contains(count) else { return nil }
        return .digits(count)
    }

    /// Returns whether a byte may occur in a path or a query (RFC 3986), including the percent sign.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default:
            "-._~!$&'()*+,;=:@%/?".utf8.contains(byte)
        }
    }
}
