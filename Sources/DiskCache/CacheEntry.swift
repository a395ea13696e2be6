// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

/// The SHA-256 of some bytes: of a value, or of a key's UTF-8 bytes.
public struct ContentDigest: Sendable, Hashable, CustomStringConvertible {
    let digest: Digest

    init(_ digest: Digest) {
        self.digest = digest
    }

    /// The digest of `data`.
    public init(of data: Data) {
        digest = Digest(of: data.span)
    }

    /// Reads 64 lowercase hexadecimal digits; nil for anything else.
    public init?(hexadecimal: String) {
        guard let digest = Digest(hexadecimal: hexadecimal) else { return nil }
        self.digest = digest
    }

    /// 64 lowercase hexadecimal digits, as `sha256sum` prints them.
    public var description: String { digest.description }
}

/// What a user can attach to a value when storing it.
public struct EntryAttributes: Sendable, Equatable {
    /// How long after its expiration the value is still given to who asks for stale values; to the
    /// millisecond, rounded down.
    ///
    /// Kept also with a value that never expires: it counts when that is given an expiration later.
    public var staleFor: Duration?
    /// What computing the value took; kept to about 6 per cent.
    public var cost: Duration?
    /// The entity tag that the value came with, as it was (RFC 9110, section 8.8.3).
    public var entityTag: String?
    /// The Last-Modified that the value came with, as it was (RFC 9110, section 8.8.2).
    public var lastModified: String?
    /// The media type of the value.
    public var contentType: String?
    /// Words by which values can be removed together.
    public var tags: [String]
    /// Anything else.
    ///
    /// All of these and the key together take at most 64 KiB.
    public var metadata: [String: String]

    /// Attributes; all can be left out.
    public init(
        staleFor: Duration? = nil,
        cost: Duration? = nil,
        entityTag: String? = nil,
        lastModified: String? = nil,
        contentType: String? = nil,
        tags: [String] = [],
        metadata: [String: String] = [:]
    ) {
        self.staleFor = staleFor
        self.cost = cost
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.contentType = contentType
        self.tags = tags
        self.metadata = metadata
    }

    /// Whether there is anything here for the record's details.
    var describesValue: Bool {
        !(entityTag == nil && lastModified == nil && contentType == nil && tags.isEmpty && metadata.isEmpty)
    }
}

extension RecordDetails {
    init(_ attributes: EntryAttributes) {
        self.init()
        entityTag = attributes.entityTag
        lastModified = attributes.lastModified
        contentType = attributes.contentType
        tags = attributes.tags
        metadata = attributes.metadata
    }
}

/// What the cache knows of a key, without its value.
public struct CacheEntry: Sendable, Equatable {
    /// The key; nil where it is longer than 1 KiB or the cache keeps digests only.
    public let key: String?
    /// SHA-256 of the key: the name of the entry's file.
    public let keyDigest: ContentDigest
    /// SHA-256 of the value: the name of the object's file.
    public let digest: ContentDigest
    /// Length of the value in bytes.
    public let size: Int
    /// When the value was stored.
    public let created: Date
    /// When it was used last, as far as the access granularity tells; nil where nobody has looked, as in a
    /// ``CacheHit``.
    public let lastAccess: Date?
    /// From when on it is a miss; nil: never.
    ///
    /// Accesses so far are considered, but in a ``CacheHit``, for which nobody has looked.
    public let expires: Date?
    /// For how long each access keeps it at least; nil: accesses prolong nothing.
    public let extendsOnAccess: Duration?
    /// Until when it can still be had as a stale value.
    public let staleUntil: Date?
    /// What was attached to it.
    public let attributes: EntryAttributes

    init(_ record: Record, keyDigest: Digest, key: String?, accessed: Timestamp?, now: Timestamp) {
        self.key = key ?? record.key
        self.keyDigest = ContentDigest(keyDigest)
        digest = ContentDigest(record.content.digest)
        size = record.content.length
        created = record.created.date
        lastAccess = accessed.map { record.lastUse(accessed: $0, now: now).date }
        let expiry = record.expiry(accessed: accessed ?? .distantPast, now: now)
        expires = expiry?.date
        extendsOnAccess = record.idleLifetime
        staleUntil = expiry.flatMap { moment in record.staleFor.map { (moment + $0).date } }
        let details = record.details
        attributes = EntryAttributes(
            staleFor: record.staleFor,
            cost: record.cost,
            entityTag: details.entityTag,
            lastModified: details.lastModified,
            contentType: details.contentType,
            tags: details.tags,
            metadata: details.metadata
        )
    }
}

/// A value that was found.
public struct CacheHit: Sendable {
    /// Where a value came from.
    public enum Tier: String, Sendable {
        /// This process's memory.
        case memory
        /// The files that all processes share.
        case disk
    }

    /// Where it came from.
    public let tier: Tier
    /// Whether it has expired; only where stale values were asked for.
    public let isStale: Bool
    /// One reference: a hit that is made, looked at and thrown away counts no other.
    let held: HeldValue<Data>
    /// When it was found.
    let moment: Timestamp

    init(_ held: HeldValue<Data>, from tier: Tier, isStale: Bool, at moment: Timestamp) {
        self.held = held
        self.tier = tier
        self.isStale = isStale
        self.moment = moment
    }

    /// The value's bytes, exactly as they were stored.
    public var data: Data {
        // Lent, not given: who only looks at it counts no reference.
        _read { yield held.value }
    }

    /// What belongs to it.
    public var entry: CacheEntry { held.entry(at: moment) }
}
