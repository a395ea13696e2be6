// SPDX-License-Identifier: Apache-2.0

/// A normalized http or https URL, without fragment and credentials.
///
/// Equivalent URLs (RFC 3986, sections 6.2.2 and 6.2.3; RFC 9110, section 4.2.3) are equal: the case of scheme and host,
/// default and empty ports, the empty path, dot segments and percent-encoding are normalized. The order of the query is
/// kept. Bytes that are invalid in a URL are percent-encoded.
package struct HTTPURL: Sendable, Hashable {
    /// `http` or `https`.
    package let scheme: String
    /// The host in lower case; an IPv6 address keeps its brackets.
    package let host: String
    /// The port; nil for the default port of the scheme.
    package let port: Int?
    /// The path, which begins with a slash.
    package let path: String
    /// The text after the question mark; nil if there is no question mark.
    package let query: String?

    /// Returns nil for another scheme, a missing host, an invalid port, or text with spaces or control characters.
    package init?(_ text: String) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        scheme = HTTPText.lowercased(String(text[..<colon]))
        let rest = text[colon...].utf8
        guard scheme == "http" || scheme == "https", rest.starts(with: "://".utf8) else { return nil }
        let bytes = Array(rest.dropFirst(3).prefix { $0 != UInt8(ascii: "#") })
        let end = bytes.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? bytes.count
        guard let authority = Self.authority(bytes[..<end], scheme: scheme) else { return nil }
        (host, port) = authority
        let mark = bytes[end...].firstIndex(of: UInt8(ascii: "?")) ?? bytes.count
        path = Self.withoutDots(Self.encoded(bytes[end..<mark]))
        query = mark < bytes.count ? Self.encoded(bytes[(mark + 1)...]) : nil
    }

    /// Scheme, host, port, path and query, as used in cache keys and for display.
    package var text: String { origin + path + (query.map { "?" + $0 } ?? "") }

    /// Scheme, host and port (RFC 9110, section 4.3.1).
    package var origin: String { "\(scheme)://\(host)" + (port.map { ":\($0)" } ?? "") }

    /// Resolves a reference, as in Location, against this URL (RFC 3986, section 5.2); nil if the result is not http or
    /// https.
    package func resolving(_ reference: String) -> HTTPURL? {
        // Many servers send spaces unencoded.
        let reference = String(reference.prefix { $0 != "#" }).replacing(" ", with: "%20")
        let head = reference.prefix { $0 != "/" && $0 != "?" }
        if head.contains(":") { return HTTPURL(reference) }
        if reference.isEmpty { return self }
        if reference.hasPrefix("//") { return HTTPURL(scheme + ":" + reference) }
        if reference.hasPrefix("/") { return HTTPURL(origin + reference) }
        if reference.hasPrefix("?") { return HTTPURL(origin + path + reference) }
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? "/"
        return HTTPURL(origin + folder + reference)
    }
}

extension HTTPURL {
    private static func authority(_ bytes: ArraySlice<UInt8>, scheme: String) -> (String, Int?)? {
        let place = bytes.lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 } ?? bytes.startIndex
        let text = String(decoding: bytes[place...], as: UTF8.self)
        var host = text[...]
        var digits = text[text.endIndex...]
        let afterAddress = text.lastIndex(of: "]").map { text.index(after: $0) } ?? text.startIndex
        if let colon = text[afterAddress...].firstIndex(of: ":") {
            host = text[..<colon]
            digits = text[text.index(after: colon)...]
        }
        guard !host.isEmpty, host.hasPrefix("[") == host.hasSuffix("]") else { return nil }
        let name = HTTPText.lowercased(String(host))
        if digits.isEmpty { return (name, nil) }
        guard HTTPText.isDigits(digits), let port = Int(digits), port <= 65_535 else { return nil }
        return (name, port == (scheme == "http" ? 80 : 443) ? nil : port)
    }

    /// Decodes unnecessary percent-encodings, converts the remaining ones to upper case, and encodes invalid bytes.
    private static func encoded(_ bytes: ArraySlice<UInt8>) -> String {
        let bytes = Array(bytes)
        var result: [UInt8] = []
        var place = 0
        while place < bytes.count {
            let byte = bytes[place]
            if byte == UInt8(ascii: "%"), place + 2 < bytes.count, let high = digit(bytes[place + 1]),
                let low = digit(bytes[place + 2])
            {
                let meant = high << 4 | low
                if isUnreserved(meant) { result.append(meant) } else { result += escape(meant) }
                place += 3
            } else {
                let isForbidden = byte >= 0x80 || "\"<>\\^`{|}".utf8.contains(byte)
                if isForbidden { result += escape(byte) } else { result.append(byte) }
                place += 1
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func escape(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "-._~".utf8.contains(byte)
        }
    }

    /// Removes dot segments (RFC 3986, section 5.2.4).
    private static func withoutDots(_ path: String) -> String {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        var kept: [Substring] = []
        for (place, segment) in zip(segments.indices, segments) {
            let isLast = place == segments.endIndex - 1
            guard segment == "." || segment == ".." else {
                kept.append(segment)
                continue
            }
            if segment == ".." { _ = kept.popLast() }
            if isLast { kept.append("") }
        }
        return "/" + kept.joined(separator: "/")
    }
}
