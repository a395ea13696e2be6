// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

extension Digest {
    /// Computes the digest of `data`.
    public init(of data: Data) {
        self.init(of: data.span)
    }
}

/// The metadata of a cache entry.
public struct CacheEntry: Sendable, Equatable {
    /// The key; nil if it is longer than 1 KiB, or if only its digest is stored (``CacheConfiguration/KeyNames``).
    public let key: String?
    /// The name of the entry's file: SHA-256 of the key, or of other bytes for a download.
    public let keyDigest: Digest
    /// SHA-256 of the value, which is the name of the object's file.
    public let digest: Digest
    /// The path of the object, the file with the value's bytes, relative to the cache's directory: `objects/ab/ab12…`.
    ///
    /// A process that opens it reads exactly these bytes: objects never change and must not be written to. After the value
    /// has been replaced or removed, a collection deletes the file. `withDescriptor` opens and verifies it. A value that is
    /// stored in memory only has no object.
    public var path: String { "\(StoreLayout.objects)/\(StoreLayout.path(of: digest))" }
    /// Length of the value in bytes.
    public let size: Int
    /// When the value was stored.
    public let created: Date
    /// When the value was last used, to the access granularity (``CacheConfiguration/accessGranularity``); nil if that was
    /// not looked up, as in a ``CacheHit``.
    public let lastAccess: Date?
    /// When the value expires; nil for never.
    ///
    /// Includes the extensions by past accesses, except in a ``CacheHit``, which does not look them up.
    public let expires: Date?
    /// The minimum lifetime after each access; nil if accesses do not extend the expiration.
    public let extendsOnAccess: Duration?
    /// When the stale period ends: ``staleFor`` after ``expires``; nil if the value has no stale period or never expires.
    public let staleUntil: Date?
    /// How long the value is available as a stale value after its expiration; nil if it is not.
    public let staleFor: Duration?
    /// How long it took to compute the value, accurate to about 6 percent.
    public let computeTime: Duration?
    /// The entity tag that was stored with the value.
    public let entityTag: String?
    /// The Last-Modified field that was stored with the value.
    public let lastModified: String?
    /// The media type of the value.
    public let contentType: String?
    /// Tags, by which values can be removed together.
    public let tags: [String]
    /// Additional names and values that were stored with the value.
    public let metadata: [String: String]
    /// Whether the entry is never sent to remote servers.
    package let staysHere: Bool

    init(_ record: Record, keyDigest: Digest, key: String?, accessed: Timestamp?, now: Timestamp) {
        self.key = key ?? record.key
        self.keyDigest = keyDigest
        digest = record.content.digest
        size = record.content.length
        created = record.created.date
        lastAccess = accessed.map { record.lastUse(accessed: $0, now: now).date }
        let expiry = record.expiry(accessed: accessed ?? .distantPast, now: now)
        expires = expiry?.date
        extendsOnAccess = record.idleLifetime
        staleUntil = expiry.flatMap { moment in record.staleFor.map { (moment + $0).date } }
        staleFor = record.staleFor
        computeTime = record.cost
        let details = record.details
        entityTag = details.entityTag
        lastModified = details.lastModified
        contentType = details.contentType
        tags = details.tags
        metadata = details.metadata
        staysHere = details.staysHere
    }
}
