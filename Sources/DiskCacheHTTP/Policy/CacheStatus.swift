// SPDX-License-Identifier: Apache-2.0

/// What a cache did with a request, in the words of RFC 9211.
public struct CacheStatus: Sendable, Equatable {
    /// Why a request went to the origin (section 2.2).
    public enum Forward: String, Sendable {
        case bypass, method, uriMiss = "uri-miss", varyMiss = "vary-miss", miss, request, stale, partial
    }

    /// Whether it was answered without the origin; nothing of ``forward`` is said then.
    public var isHit = false
    /// Why the request went to the origin.
    public var forward: Forward?
    /// The status that the origin answered with.
    public var forwardStatus: Int?
    /// Seconds until it is stale; below zero since then.
    public var timeToLive: Int?
    /// Whether the response is stored now.
    public var isStored = false
    /// Whether the request was joined with another one.
    public var isCollapsed = false
    /// The key of what is stored.
    public var key: String?
    /// Anything else that is worth knowing.
    public var detail: String?

    /// Nothing yet.
    public init() {}

    /// As a member of the field Cache-Status.
    public func text(cache: String) -> String {
        var parts = [Self.isToken(cache) ? cache : Self.quoted(cache)]
        if isHit { parts.append("hit") }
        if !isHit, let forward { parts.append("fwd=\(forward.rawValue)") }
        if !isHit, let forwardStatus { parts.append("fwd-status=\(forwardStatus)") }
        if let timeToLive { parts.append("ttl=\(timeToLive)") }
        if isStored { parts.append("stored") }
        if isCollapsed { parts.append("collapsed") }
        if let key { parts.append("key=" + Self.quoted(key)) }
        if let detail { parts.append("detail=" + (Self.isToken(detail) ? detail : Self.quoted(detail))) }
        return parts.joined(separator: "; ")
    }

    /// Of structured fields (RFC 9651, section 3.3.4): it begins with a letter or an asterisk.
    private static func isToken(_ text: String) -> Bool {
        guard let first = text.utf8.first else { return false }
        let begins = (0x41...0x5A).contains(first) || (0x61...0x7A).contains(first) || first == UInt8(ascii: "*")
        return begins
            && text.utf8.allSatisfy { HTTPText.isToken(String(decoding: [$0], as: UTF8.self)) || ":/".utf8.contains($0) }
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
