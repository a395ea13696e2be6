// SPDX-License-Identifier: Apache-2.0

extension TransportRequest {
    /// The URL without user, password and query, for messages.
    var place: String {
        let parts = parts
        let path = url[parts.authority.upperBound...].prefix { $0 != "?" && $0 != "#" }
        guard parts.isWhole else { return "the URL" }
        return String(url[..<parts.authority.lowerBound] + url[parts.server] + path)
    }

    /// The URL up to its path: what has the same one has the same server.
    var site: Substring { url[..<parts.authority.upperBound] }

    /// Scheme, server and port, as they are compared.
    var origin: String {
        let parts = parts
        let scheme = url[..<parts.authority.lowerBound].lowercased()
        let server = url[parts.server].lowercased()
        let usual = scheme == "https://" ? ":443" : ":80"
        return scheme + (server.hasSuffix(usual) ? server.dropLast(usual.count) : server[...])
    }

    /// Where the authority is, and the server with its port in it (RFC 3986, 3.2).
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

    /// Whether it may be sent twice (RFC 9110, 9.2.2); of a method that is not known it can't be told.
    var isIdempotent: Bool { ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(method) }

    /// Whether a response is a redirect that is to be followed, or would be if there were not too many.
    func follows(_ response: TransportResponse) -> Bool {
        guard mostRedirects > 0, ["GET", "HEAD"].contains(method), case .nothing = source else {
            return false
        }
        return [301, 302, 303, 307, 308].contains(response.status) && !response.values("location").isEmpty
    }

    /// The same for where a redirect leads.
    func redirected(to url: String) -> TransportRequest {
        var next = self
        next.url = url
        if next.origin != origin {
            next.fields.removeAll { $0.isSecret || $0.isNamed("host") }
            next.credentials = nil
        }
        return next
    }

    /// What can't be sent is refused before anything is opened.
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
        // No longer one exists (RFC 1035, 2.3.4), and libcurl 7.69 to 8.3 may write it beyond a buffer for a SOCKS proxy.
        guard url[parts.server].utf8.count <= 255 + 6 else {
            throw TransportError(.invalidRequest, "a server's name of more than 255 bytes")
        }
        for field in fields {
            let isName = !field.name.isEmpty && field.name.utf8.allSatisfy(Self.isTokenByte)
            guard isName, field.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                // Without the value, which may be a secret.
                let name = field.name.debugDescription
                throw TransportError(.invalidRequest, "\(place): not a header field: \(name)")
            }
        }
        if mostBytes < 0 || mostHeadBytes < 0 || mostRedirects < 0 {
            throw TransportError(.invalidRequest, "\(place): a negative limit")
        }
    }

    /// RFC 9110, 5.6.2.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
