// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// Options for storing a value: expiration, metadata and placement.
///
/// ```swift
/// try cache.put(data, forKey: key, options: PutOptions(expires: .days(7), tags: ["thumbs"]))
/// ```
///
/// The key and the metadata may take at most 64 KiB together.
public struct PutOptions: Sendable, Equatable {
    /// When the value expires; nil for the configuration's default.
    public var expires: Expiration?
    /// The effect of an access on the expiration; nil for the configuration's default.
    public var onAccess: Expiration.OnAccess?
    /// How long after its expiration the value is still returned to callers that accept stale values; nil for no such
    /// period.
    ///
    /// Rounded down to the millisecond. Stored even if the value never expires, in case it is given an expiration later.
    public var staleFor: Duration?
    /// How long it took to compute the value, stored accurate to about 6 percent.
    ///
    /// If it is nil, `value(forKey:orCompute:)` measures it.
    public var computeTime: Duration?
    /// The entity tag of the value, stored unchanged (RFC 9110, section 8.8.3).
    public var entityTag: String?
    /// The Last-Modified field of the value, stored unchanged (RFC 9110, section 8.8.2).
    public var lastModified: String?
    /// The media type of the value.
    public var contentType: String?
    /// Tags, by which values can be removed together.
    public var tags: [String]
    /// Additional names and values.
    public var metadata: [String: String]
    /// When the put returns; nil for the configuration's default.
    ///
    /// Computed values, files, `putIfAbsent`, `update` and `increment` are always on disk when the call returns, except
    /// computed values that are stored in memory only (``keeps``).
    public var writing: CacheConfiguration.Writing?
    /// Whether the value is stored in memory, on disk or both; nil for the configuration's default.
    public var keeps: CacheConfiguration.Keeping?
    /// The maximum time that the value stays in this process's memory; nil for the configuration's default.
    ///
    /// Counted from the put. It is not stored on disk: for a value that is read from disk later, the default of the reading
    /// process applies. A negative time counts as 0.
    public var memoryLifetime: Duration?
    /// The cost of the value in this process's memory; nil for the configuration's default.
    ///
    /// In the unit of ``CacheConfiguration/Memory/costLimit``; a negative cost counts as 0. It is not stored on disk
    /// either. If you count costs in another unit than bytes, set ``CacheConfiguration/Memory/countLimit`` too.
    public var memoryCost: Int?
    /// Whether neither the value nor its removal is ever sent to remote servers.
    ///
    /// Must be set for all puts of a key or for none: otherwise the removal of a shared value would not be sent.
    package var staysHere = false

    /// Creates options; all parameters are optional.
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
        writing: CacheConfiguration.Writing? = nil,
        keeps: CacheConfiguration.Keeping? = nil,
        memoryLifetime: Duration? = nil,
        memoryCost: Int? = nil
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
        self.keeps = keeps
        self.memoryLifetime = memoryLifetime
        self.memoryCost = memoryCost
    }

    /// Creates the options of an existing value, for a value that replaces it.
    ///
    /// The new value expires at the same time, with the same effect of accesses, stale period, compute time, headers, tags
    /// and metadata.
    ///
    /// - Parameter entry: the entry of the existing value.
    public init(keeping entry: CacheEntry) {
        self.init(
            expires: entry.expires.map { Expiration.at($0) } ?? .never,
            onAccess: entry.extendsOnAccess.map { Expiration.OnAccess.set($0) } ?? .keep,
            staleFor: entry.staleFor,
            computeTime: entry.computeTime,
            entityTag: entry.entityTag,
            lastModified: entry.lastModified,
            contentType: entry.contentType,
            tags: entry.tags,
            metadata: entry.metadata
        )
    }

    /// Sets the fields of the record that are stored unchanged.
    func describe(_ record: inout Record) {
        record.cost = computeTime
        // Constructing empty details costs 300 instructions.
        let hasHeaders = entityTag != nil || lastModified != nil || contentType != nil
        guard hasHeaders || !tags.isEmpty || !metadata.isEmpty || staysHere else { return }
        var details = RecordDetails()
        (details.entityTag, details.lastModified) = (entityTag, lastModified)
        (details.contentType, details.tags, details.metadata) = (contentType, tags, metadata)
        details.staysHere = staysHere
        record.details = details
    }
}
