// SPDX-License-Identifier: Apache-2.0

package import CacheStore
package import Transport

/// Where a server is, as its URL says.
package struct RemoteAddress: Sendable, Hashable {
    /// Lower case.
    package let scheme: String
    /// Without the brackets of a number of version 6; empty for a unix socket.
    package let host: String
    package let port: UInt16
    /// Of HTTP what stands before all paths, without a slash at its end; of Redis the number of the database.
    package let path: String
    /// The path of a unix socket.
    package let socketPath: String?

    /// - Throws: ``CacheError/Code/badConfiguration``; not with what stands before an @.
    package init(_ url: String) throws(CacheError) {
        guard let separator = url.firstRange(of: "://"),
            url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
        else {
            throw Self.bad("a URL of a server has no scheme, or a blank in it")
        }
        scheme = url[..<separator.lowerBound].lowercased()
        var rest = url[separator.upperBound...]
        if scheme == "redis+unix" {
            let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts[0].hasPrefix("/") else { throw Self.bad("redis+unix:// needs an absolute path") }
            let query = parts.count > 1 ? parts[1] : "db=0"
            (host, port, socketPath) = ("", 0, String(parts[0]))
            path = query.hasPrefix("db=") ? String(query.dropFirst(3)) : "0"
            return
        }
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard !authority.contains("@") else {
            throw Self.bad("a URL has a user in it: put it into the file of credentials")
        }
        rest = rest.dropFirst(authority.count)
        guard !rest.contains("?"), !rest.contains("#") else {
            throw Self.bad("a URL of a server has a query")
        }
        (host, port) = try Self.hostAndPort(authority, scheme)
        socketPath = nil
        var path = String(rest)
        while path.last == "/" { path.removeLast() }
        self.path = scheme.hasPrefix("redis") ? String(path.drop { $0 == "/" }) : path
    }

    private static func hostAndPort(
        _ authority: Substring,
        _ scheme: String
    ) throws(CacheError) -> (String, UInt16) {
        let ports: [String: UInt16] = ["http": 80, "https": 443, "redis": 6379, "rediss": 6379]
        guard let usual = ports[scheme] else {
            throw bad("servers are reached by http, https, redis, rediss or redis+unix, not by \(scheme)")
        }
        var (host, port) = (authority, Optional(usual))
        if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") {
            host = authority[authority.index(after: authority.startIndex)..<end]
            let rest = authority[authority.index(after: end)...]
            if !rest.isEmpty { port = rest.hasPrefix(":") ? UInt16(rest.dropFirst()) : nil }
        } else if let colon = authority.lastIndex(of: ":") {
            host = authority[..<colon]
            port = UInt16(authority[authority.index(after: colon)...])
        }
        guard !host.isEmpty, let port, port > 0 else {
            throw bad("a URL of a server has no host, or a wrong port")
        }
        return (host.lowercased(), port)
    }

    private static func bad(_ words: String) -> CacheError {
        CacheError(.badConfiguration, "share values between machines: \(words): correct the configuration")
    }

    /// What the field `Host` says, and where credentials are found.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        let isUsual = scheme == "http" && port == 80 || scheme == "https" && port == 443
        return isUsual ? name : "\(name):\(port)"
    }

    /// What its paths are put behind.
    package var origin: String { "\(scheme)://\(authority)" }

    /// For people, and what it is told from other servers by.
    package var name: String {
        if let socketPath { return "redis+unix://\(socketPath)" }
        return scheme.hasPrefix("redis") ? "\(origin)/\(path)" : origin + path
    }

    /// Where it listens.
    ///
    /// - Parameter security: for `rediss`.
    package func place(_ security: TransportSecurity) -> SocketPlace {
        let security = scheme == "rediss" ? security : nil
        return socketPath.map { .path($0) } ?? .network(host: host, port: port, security: security)
    }
}
