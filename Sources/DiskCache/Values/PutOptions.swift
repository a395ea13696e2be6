// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// What a cache is to do with a value, and what it is to keep beside it: everything that goes with a put but key and
/// bytes.
///
/// ```swift
/// try cache.put(data, forKey: key, options: PutOptions(expires: .days(7), tags: ["thumbs"]))
/// ```
///
/// The key and all that is kept beside the value take at most 64 KiB together.
public struct PutOptions: Sendable, Equatable {
    /// Until when the value is good; nil: the configuration's default.
    public var expires: Expiration?
    /// What an access does to that; nil: the configuration's default.
    public var onAccess: Expiration.OnAccess?
    /// How long after its expiration the value is still given to who asks for stale values; to the
    /// millisecond, rounded down.
    ///
    /// Kept also with a value that never expires: it counts when that is given an expiration later.
    public var staleFor: Duration?
    /// What computing the value took; kept to about 6 per cent.
    ///
    /// `value(forKey:orCompute:)` measures it if it is not given.
    public var computeTime: Duration?
    /// The entity tag that the value came with, as it was (RFC 9110, section 8.8.3).
    public var entityTag: String?
    /// The Last-Modified that the value came with, as it was (RFC 9110, section 8.8.2).
    public var lastModified: String?
    /// The media type of the value.
    public var contentType: String?
    /// Words by which values can be removed together.
    public var tags: [String]
    /// Anything else.
    public var metadata: [String: String]
    /// When the put returns; nil: as the configuration says.
    ///
    /// A computed value, a file, and what replaces or updates under a condition is always on disk then.
    public var writing: CacheConfiguration.Writing?

    /// All can be left out.
    public init(
        expires: Expiration? = nil,
        onAccess: Expiration.OnAccess? = nil,
        staleFor: Duration? = nil,
        computeTime: Duration? = nil,
        entityTag: String? = nil,
        lastModified: String? = nil,
        contentType: String? = nil,
        tags: [String] = [],
        metadata: [String: String] = [:],
        writing: CacheConfiguration.Writing? = nil
    ) {
        self.expires = expires
        self.onAccess = onAccess
        self.staleFor = staleFor
        self.computeTime = computeTime
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.contentType = contentType
        self.tags = tags
        self.metadata = metadata
        self.writing = writing
    }

    /// What of this belongs in the record's details; nil: nothing. Copying what is not there costs 300 instructions.
    var details: RecordDetails? {
        if entityTag == nil, lastModified == nil, contentType == nil, tags.isEmpty, metadata.isEmpty {
            return nil
        }
        var details = RecordDetails()
        details.entityTag = entityTag
        details.lastModified = lastModified
        details.contentType = contentType
        details.tags = tags
        details.metadata = metadata
        return details
    }
}
