// SPDX-License-Identifier: Apache-2.0

/// How a cache handled a request, with the terms of RFC 9211.
public struct CacheStatus: Sendable, Hashable, CustomStringConvertible {
    /// Why a request was forwarded to the origin server (section 2.2).
    public enum Forward: String, Sendable, CaseIterable {
        /// The cache was bypassed.
        case bypass
        /// Requests with this method can't be answered from the cache.
        case method
        /// No response for this URL is stored.
        ///
        /// Its raw value is `uri-miss`.
        case uriMiss = "uri-miss"
        /// Responses for this URL are stored, but other request fields selected them.
        ///
        /// Its raw value is `vary-miss`.
        case varyMiss = "vary-miss"
        /// No stored response can be used.
        case miss
        /// The stored response is fresh, but the request or its mode does not accept it.
        case request
        /// The stored response is stale, or must be validated before each use.
        case stale
        /// Only a part of the response is stored, and it does not include the requested bytes.
        case partial
    }

    /// Whether the request was answered without the origin server.
    ///
    /// ``text(cache:)`` then omits the forwarding details.
    public package(set) var isHit = false
    /// Why the request was forwarded to the origin server; nil if it was not.
    public package(set) var forward: Forward?
    /// The status code of the origin server's response (section 2.3).
    public package(set) var forwardStatus: Int?
    /// Seconds until the response becomes stale; negative afterward (section 2.4).
    public package(set) var timeToLive: Int?
    /// Whether the origin server's response was stored (section 2.5).
    public package(set) var isStored = false
    /// Whether the request waited for another request, of this or another process, and used its response (section 2.6).
    public package(set) var isCollapsed = false
    /// The cache key of the response (section 2.7), without credentials.
    public package(set) var key: String?
    /// Implementation-specific detail (section 2.8).
    public package(set) var detail: String?

    package init() {}

    /// The status in the format of the Cache-Status field, such as `diskcache; fwd=stale; fwd-status=304; ttl=60`.
    public var description: String { text(cache: "diskcache") }

    /// Returns the status as a member of the Cache-Status field, with this name of the cache.
    public func text(cache: String) -> String {
        var parts = [Self.isToken(cache) ? cache : Self.quoted(cache)]
        if isHit {
            parts.append("hit")
        } else {
            if let forward { parts.append("fwd=\(forward.rawValue)") }
            if let forwardStatus { parts.append("fwd-status=\(forwardStatus)") }
        }
        if let timeToLive { parts.append("ttl=\(timeToLive)") }
        if !isHit, isStored { parts.append("stored") }
        if !isHit, isCollapsed { parts.append("collapsed") }
        if let key { parts.append("key=" + Self.quoted(key)) }
        if let detail { parts.append("detail=" + (Self.isToken(detail) ? detail : Self.quoted(detail))) }
        return parts.joined(separator: "; ")
    }

    /// Returns whether the text is a token of structured fields (RFC 9651, section 3.3.4).
    ///
    /// Such a token begins with a letter or an asterisk.
    private static func isToken(_ text: String) -> Bool {
        guard let first = text.utf8.first else { return false }
        let isLetter = (0x41...0x5A).contains(first & 0xDF) && first < 0x80
        return (isLetter || first == UInt8(ascii: "*"))
            && HTTPText.isToken(text.filter { $0 != ":" && $0 != "/" })
    }

    /// Returns the text as a string of structured fields, with question marks for characters that such a string can't
    /// contain.
    private static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append((0x20...0x7E).contains(byte) ? byte : UInt8(ascii: "?"))
        }
        return "\"" + String(decoding: bytes, as: UTF8.self) + "\""
    }
}
