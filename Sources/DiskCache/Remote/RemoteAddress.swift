// SPDX-License-Identifier: Apache-2.0

/// A server's address, from its URL.
package struct RemoteAddress: Sendable, Hashable {
    /// The scheme, in lower case.
    package let scheme: String
    /// The host, without the brackets of an IPv6 address; empty for a Unix socket.
    package let host: String
    package let port: UInt16
    /// For HTTP the prefix of all paths, without a trailing slash; for Redis the number of the database, empty for the
    /// first one.
    package let path: String
    /// The path of a Unix socket; nil for other addresses.
    package let socketPath: String?

    /// Parses a URL.
    ///
    /// - Throws: a fault whose text omits the URL if it contains an @, and so perhaps a password.
    package init(_ url: String) throws(ConfigurationFault) {
        let shown = url.contains("@") ? "a URL" : "'\(url)'"
        let schemes = ["http", "https", "redis", "rediss", "redis+unix"]
        guard let separator = url.firstRange(of: "://"), url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }),
            schemes.contains(url[..<separator.lowerBound].lowercased())
        else {
            let form = "write it like http://cache:8080/ or redis://cache:6379/0"
            throw Self.fault("invalid server \(shown): \(form)")
        }
        scheme = url[..<separator.lowerBound].lowercased()
        let rest = url[separator.upperBound...]
        if scheme == "redis+unix" {
            let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            let query = parts.count > 1 ? parts[1] : "db=0"
            guard parts[0].hasPrefix("/"), query.hasPrefix("db=") else {
                throw Self.fault("\(shown) is no socket: write it like redis+unix:///run/redis.sock?db=0")
            }
            (host, port, socketPath) = ("", 0, String(parts[0]))
            path = try Self.database(query.dropFirst(3), of: shown)
            return
        }
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard !authority.contains("@") else {
            throw Self.fault("a URL has a user or a password: name a file for them with remote.credentials")
        }
        var path = rest.dropFirst(authority.count)
        guard !path.contains("?"), !path.contains("#") else {
            throw Self.fault("\(shown) has a query or a fragment: leave it out")
        }
        guard let (host, port) = Self.hostAndPort(authority, scheme) else {
            throw Self.fault("\(shown) has no host, or a wrong port")
        }
        (self.host, self.port, socketPath) = (host, port, nil)
        while path.last == "/" { path.removeLast() }
        let isRedis = scheme.hasPrefix("redis")
        self.path = isRedis ? try Self.database(path.drop { $0 == "/" }, of: shown) : String(path)
    }

    /// Checks the number of a Redis database, and returns it; the empty string stands for the first database.
    private static func database(_ text: Substring, of shown: String) throws(ConfigurationFault) -> String {
        guard text.isEmpty || text.utf8.count < 10 && text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
            throw fault("\(shown) names no database: its last part is a number, such as 0")
        }
        return String(text)
    }

    private static func hostAndPort(_ authority: Substring, _ scheme: String) -> (String, UInt16)? {
        let ports: [String: UInt16] = ["http": 80, "https": 443]
        var (host, port) = (authority, Optional(ports[scheme] ?? 6379))
        var rest = Substring()
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            rest = authority[authority.index(after: end)...]
        } else {
            host = authority.prefix { $0 != ":" }
            rest = authority.dropFirst(host.count)
        }
        if !rest.isEmpty {
            let digits = rest.dropFirst()
            let isNumber = rest.first == ":" && digits.utf8.allSatisfy { 0x30...0x39 ~= $0 }
            port = isNumber ? UInt16(digits) : nil
        }
        guard !host.isEmpty, let port, port > 0 else { return nil }
        return (host.lowercased(), port)
    }

    private static func fault(_ words: String) -> ConfigurationFault {
        ConfigurationFault(key: "servers", words: words)
    }

    /// The value of the HTTP header field `Host`, also used to look up credentials.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        let isUsual = scheme == "http" && port == 80 || scheme == "https" && port == 443
        return isUsual ? name : "\(name):\(port)"
    }

    /// The part of all the server's URLs before the path.
    package var origin: String { "\(scheme)://\(authority)" }

    /// A name to show to users, which also distinguishes the server from others.
    package var name: String {
        if let socketPath { return "redis+unix://\(socketPath)" }
        return scheme.hasPrefix("redis") ? "\(origin)/\(path)" : origin + path
    }
}
