// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// The options of a put, or the new expiration of a value, in a request.
struct ServeTerms {
    let ttl: ServeSpan?
    let expiresAt: String?
    let renew: Bool?
    let staleFor: ServeSpan?
    let ifAbsent: Bool?
    let etag: String?
    let lastModified: String?
    let contentType: String?
    let tags: [String]?
    let metadata: [String: String]?

    init(_ fields: inout ServeFields) {
        ttl = fields.read(.ttl, "a number of seconds, or a string like 15m or never")
        expiresAt = fields.read(.expiresAt, "a string like 2030-01-31T18:00:00Z")
        renew = fields.read(.renew, "true or false")
        staleFor = fields.read(.staleFor, "a number of seconds, or a string like 15m")
        ifAbsent = fields.read(.ifAbsent, "true or false")
        etag = fields.read(.etag, "a string")
        lastModified = fields.read(.lastModified, "a string")
        contentType = fields.read(.contentType, "a string")
        tags = fields.read(.tags, "a list of strings")
        metadata = fields.read(.metadata, "an object of strings")
    }

    /// Returns the expiration; nil if none is given.
    func expiration() throws -> Expiration? {
        if ttl != nil, expiresAt != nil {
            throw ServeFault(.badRequest, "ttl and expiresAt can't be used together: give one")
        }
        var expiration = try ttl?.expiration()
        if let expiresAt { expiration = .at(try ExpirationOptions.moment(expiresAt)) }
        if renew == true, expiration == nil || expiration == .never {
            throw ServeFault(.badRequest, "renew needs a value that expires: give ttl or expiresAt too")
        }
        return expiration
    }

    /// Whether an access renews the expiration.
    var onAccess: Expiration.OnAccess { renew == true ? .renew : .keep }

    /// Returns the options of a put.
    func options() throws -> PutOptions {
        if metadata?[""] != nil {
            throw ServeFault(.badRequest, "metadata has an empty name: name each text")
        }
        return PutOptions(
            expires: try expiration(),
            onAccess: onAccess,
            staleFor: try staleFor?.duration(),
            entityTag: etag,
            lastModified: lastModified,
            contentType: contentType,
            tags: tags ?? [],
            metadata: metadata ?? [:]
        )
    }
}

/// A time span: a number of seconds, or text in the notation of the command line.
enum ServeSpan: Decodable, Equatable {
    case seconds(Double)
    case words(String)

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        do {
            self = .words(try value.decode(String.self))
        } catch is DecodingError {
            self = .seconds(try value.decode(Double.self))
        }
    }

    /// Returns the expiration after this span, or never for "never".
    func expiration() throws -> Expiration {
        switch self {
        case .seconds: return .after(try duration())
        case .words(let text): return try ExpirationOptions.lifetime(text)
        }
    }

    func duration() throws -> Duration {
        switch self {
        case .words(let text): return try Quantity.duration(text)
        case .seconds(let seconds):
            // The same limit as for text: a time that far from now fits into 64 bits of nanoseconds.
            guard (0..<9e9).contains(seconds) else {
                throw ServeFault(.badRequest, "a span of \(seconds) s is out of range: give 0 to 9e9")
            }
            return .seconds(seconds)
        }
    }
}
