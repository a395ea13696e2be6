// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A response, from the network or from the cache.
public struct FetchResponse: Sendable {
    /// The status from the server, or 504 if the mode allows no request and no stored response can be used (RFC 9111,
    /// section 5.2.1.7).
    public var status: Int
    /// The header fields, in order; a response from the cache lacks the fields that are never stored.
    public var fields: [(name: String, value: String)]
    /// The final URL after redirects, without user, password and fragment.
    public var url: String
    /// The body, or the requested range of it; empty if it was written to a file or a descriptor.
    public var body: Data
    /// The length of the body in bytes, whatever its destination.
    public var length: Int64
    /// The SHA-256 of the whole body as `sha256:` and 64 hexadecimal digits; nil if the body is not stored.
    public var digest: String?
    /// How long ago the origin server generated the response; nil if unknown.
    public var age: Duration?
    /// How the cache handled the request, in the terms of RFC 9211.
    public var cacheStatus: CacheStatus

    /// Returns the values of all fields with this name, joined by commas; nil if there are none.
    ///
    /// Upper and lower case of the name make no difference.
    public func field(_ name: String) -> String? {
        let name = HTTPText.lowercased(name)
        let values = fields.filter { HTTPText.lowercased($0.name) == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}
