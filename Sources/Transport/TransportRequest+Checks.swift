// SPDX-License-Identifier: Apache-2.0

extension TransportRequest {
    /// The URL without user, password and query, for messages.
    var place: String {
        let parts = parts
        let path = url[parts.authority.upperBound...].prefix { $0 != "?" && $0 != "#" }
        guard parts.isWhole else { return "the URL" }
        return String(url[..<parts.authority.lowerBound] + url[parts.server] + path)
    }

    /// The part of the URL before its path, which identifies the server.
    var site: Substring { url[..<parts.authority.upperBound] }

    /// The ranges of the authority, and of the server with its port within the authority (RFC 3986, section 3.2).
    private var parts: (isWhole: Bool, authority: Range<String.Index>, server: Range<String.Index>) {
        let text = url.utf8
        let colon = text.firstIndex(of: UInt8(ascii: ":")) ?? text.endIndex
        guard text[colon...].starts(with: "://".utf8) else {
            return (false, text.endIndex..<text.endIndex, text.endIndex..<text.endIndex)
        }
        let start = text.index(colon, offsetBy: 3)
        // "/", "?" or "#".
        let end = text[start...].firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? text.endIndex
        let at = text[start..<end].lastIndex(of: UInt8(ascii: "@"))
        return (true, start..<end, (at.map { text.index(after: $0) } ?? start)..<end)
    }

    /// Whether the request may be sent twice (RFC 9110, section 9.2.2); false for unknown methods.
    var isIdempotent: Bool { ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method) }

    /// Rejects an invalid request before anything is opened.
    func check() throws(TransportError) {
        let isToken = !method.isEmpty && method.utf8.allSatisfy(Self.isTokenByte)
        guard isToken else { throw TransportError(.invalidRequest, "\(place): not a method: \(method)") }
        let scheme = url[..<parts.authority.lowerBound].lowercased()
        guard scheme == "http://" || scheme == "https://" else {
            throw TransportError(.unsupportedScheme, "\(place): only http and https are supported")
        }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw TransportError(.invalidRequest, "\(place): a space or a control character in the URL")
        }
        // No name is longer (RFC 1035, section 2.3.4), and libcurl 7.69 to 8.3 may overflow a buffer for a SOCKS proxy.
        guard url[parts.server].utf8.count <= 255 + 6 else {
            throw TransportError(.invalidRequest, "a server's name of more than 255 bytes")
        }
        for field in fields {
            let isName = !field.name.isEmpty && field.name.utf8.allSatisfy(Self.isTokenByte)
            guard isName, field.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                // The message omits the value, which may be a secret.
                let name = field.name.debugDescription
                throw TransportError(.invalidRequest, "\(place): not a header field: \(name)")
            }
        }
        if mostBytes < 0 || mostHeadBytes < 0 {
            throw TransportError(.invalidRequest, "\(place): a negative limit")
        }
    }

    /// Returns whether a token may contain the byte (RFC 9110, section 5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
