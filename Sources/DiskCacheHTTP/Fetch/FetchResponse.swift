// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A response, from the network or from the cache.
public struct FetchResponse: Sendable {
    /// As the server gave it; 504 if the mode allows no request and nothing that is stored will do (RFC 9111,
    /// section 5.2.1.7).
    public var status: Int
    /// The fields of the head, in their order; without those that are never stored if it comes from the
    /// cache.
    public var fields: [(name: String, value: String)]
    /// The last URL after redirects, without user, password and fragment.
    public var url: String
    /// The body, or the range of it that was asked for; empty if it went to a file or a descriptor.
    public var body: Data
    /// Bytes of the body, wherever they went.
    public var length: Int64
    /// The SHA-256 of the whole body as `sha256:` and 64 digits, if it is stored.
    public var digest: String?
    /// How long ago the server made it, if that is known.
    public var age: Duration?
    /// What the cache did, in the words of RFC 9211.
    public var cacheStatus: CacheStatus

    /// The values of all fields of this name, whatever its case, joined by commas; nil if there are none.
    public func field(_ name: String) -> String? {
        let name = HTTPText.lowercased(name)
        let values = fields.filter { HTTPText.lowercased($0.name) == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}
