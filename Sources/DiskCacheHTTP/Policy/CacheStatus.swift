// SPDX-License-Identifier: Apache-2.0

/// What a cache did with a request, in the words of RFC 9211.
public struct CacheStatus: Sendable, Hashable, CustomStringConvertible {
    /// Why a request went to the origin (section 2.2).
    public enum Forward: String, Sendable, CaseIterable {
        /// The cache was told to have no part in it.
        case bypass
        /// Requests of its method can't be answered from the cache.
        case method
        /// Nothing is stored for its URL. Its text is `uri-miss`.
        case uriMiss = "uri-miss"
        /// The stored response was selected by other request fields. Its text is `vary-miss`.
        case varyMiss = "vary-miss"
        /// Nothing stored will do.
        case miss
        /// The stored response is fresh, but the request, or its mode, asks for more.
        case request
        /// The stored response is stale, or must be validated before each use.
        case stale
        /// Only a part of it is stored, and not all that is asked for.
        case partial
    }

    /// Whether it was answered without the origin.
    ///
    /// What speaks of the way there is left out of ``text(cache:)`` then.
    public package(set) var isHit = false
    /// Why it went to the origin; nil if it did not.
    public package(set) var forward: Forward?
    /// The status that the origin answered with (section 2.3).
    public package(set) var forwardStatus: Int?
    /// Seconds until the answer is stale; below zero since then (section 2.4).
    public package(set) var timeToLive: Int?
    /// Whether the origin's response was kept (section 2.5).
    public package(set) var isStored = false
    /// Whether the request waited for another one, of this process or of another, and took its response
    /// (section 2.6).
    public package(set) var isCollapsed = false
    /// What names the response in the cache (section 2.7); without credentials.
    public package(set) var key: String?
    /// What else is worth knowing, in words of one's own (section 2.8).
    public package(set) var detail: String?

    package init() {}

    /// As a cache named `diskcache` says it: `diskcache; fwd=stale; fwd-status=304; ttl=60`.
    public var description: String { text(cache: "diskcache") }

    /// As a member of the field Cache-Status, for a cache of this name.
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

    /// Of structured fields (RFC 9651, section 3.3.4): it begins with a letter or an asterisk.
    private static func isToken(_ text: String) -> Bool {
        guard let first = text.utf8.first else { return false }
        let isLetter = (0x41...0x5A).contains(first & 0xDF) && first < 0x80
        return (isLetter || first == UInt8(ascii: "*"))
            && HTTPText.isToken(text.filter { $0 != ":" && $0 != "/" })
    }

    /// With what a string there may not have as a question mark.
    private static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append((0x20...0x7E).contains(byte) ? byte : UInt8(ascii: "?"))
        }
        return "\"" + String(decoding: bytes, as: UTF8.self) + "\""
    }
}
