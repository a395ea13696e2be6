// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

extension Digest {
    /// The digest of `data`.
    public init(of data: Data) {
        self.init(of: data.span)
    }
}

/// What the cache knows about a key, apart from its value.
public struct CacheEntry: Sendable, Equatable {
    /// The key; nil if it is longer than 1 KiB, or if the cache keeps digests only.
    public let key: String?
    /// The name of the entry's file: SHA-256 of the key, for a download of other bytes.
    public let keyDigest: Digest
    /// SHA-256 of the value: the name of the object's file.
    public let digest: Digest
    /// The file with the value's bytes, below the cache's directory: `objects/ab/ab12…`.
    ///
    /// Whoever opens it reads exactly these bytes: an object never changes, and must not be written to. It is gone once
    /// the value was replaced or removed and a collection has run. `withDescriptor` opens it and checks it. There is
    /// none of a value that is kept in memory alone.
    public var path: String { "\(StoreLayout.objects)/\(StoreLayout.path(of: digest))" }
    /// Length of the value in bytes.
    public let size: Int
    /// When the value was stored.
    public let created: Date
    /// When it was last used, to the access granularity; nil if that was not looked up, as in a ``CacheHit``.
    public let lastAccess: Date?
    /// When it expires; nil for never.
    ///
    /// Takes account of accesses so far, except in a ``CacheHit``, for which they are not looked up.
    public let expires: Date?
    /// How long each access keeps it at least; nil if accesses don't extend its life.
    public let extendsOnAccess: Duration?
    /// Until when it is available as a stale value: ``staleFor`` after ``expires``.
    public let staleUntil: Date?
    /// How long after its expiration it is available as a stale value; nil for not at all.
    public let staleFor: Duration?
    /// How long it took to compute the value, to about 6 per cent.
    public let computeTime: Duration?
    /// The entity tag that the value came with.
    public let entityTag: String?
    /// The Last-Modified that the value came with.
    public let lastModified: String?
    /// The media type of the value.
    public let contentType: String?
    /// Words by which values can be removed together.
    public let tags: [String]
    /// Other names and values that were stored with it.
    public let metadata: [String: String]
    /// Whether other machines are told nothing of it.
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
