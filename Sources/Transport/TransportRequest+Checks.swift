// SPDX-License-Identifier: Apache-2.0

extension TransportRequest {
    /// The URL without user, password and query, for messages.
    var place: String {
        guard let scheme = url.firstRange(of: "://") else { return "the URL" }
        let rest = url[scheme.upperBound...]
        let bare = rest.prefix { $0 != "?" && $0 != "#" }
        let authority = bare.prefix { $0 != "/" }
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        return String(url[..<scheme.upperBound] + host + bare[authority.endIndex...])
    }

    /// Scheme, server and port, as they are compared.
    var origin: String {
        let place = self.place.lowercased()
        guard let scheme = place.firstRange(of: "://") else { return place }
        let end = place[scheme.upperBound...].firstIndex(of: "/") ?? place.endIndex
        let origin = place[..<end]
        let usual = place.hasPrefix("https:") ? ":443" : ":80"
        return String(origin.hasSuffix(usual) ? origin.dropLast(usual.count) : origin)
    }

    /// Whether a response is a redirect that is to be followed, or would be if there were not too many.
    func follows(_ response: TransportResponse) -> Bool {
        guard mostRedirects > 0, method == "GET" || method == "HEAD", case .nothing = source else { return false }
        return [301, 302, 303, 307, 308].contains(response.status) && !response.values("location").isEmpty
    }

    /// The same for where a redirect leads.
    func redirected(to url: String) -> TransportRequest {
        var next = self
        next.url = url
        if next.origin != origin {
            next.fields.removeAll { $0.isSecret || $0.name.lowercased() == "host" }
            next.credentials = nil
        }
        return next
    }

    /// What can't be sent is refused before anything is opened.
    func check() throws(TransportError) {
        let isToken = !method.isEmpty && method.utf8.allSatisfy(Self.isTokenByte)
        guard isToken else { throw TransportError(.invalidRequest, "\(place): not a method: \(method)") }
        let scheme = url.prefix { $0 != ":" }.lowercased()
        guard scheme == "http" || scheme == "https", url.dropFirst(scheme.count).hasPrefix("://") else {
            throw TransportError(.unsupportedScheme, "\(place): only http and https are supported")
        }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw TransportError(.invalidRequest, "\(place): a space or a control character in the URL")
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
