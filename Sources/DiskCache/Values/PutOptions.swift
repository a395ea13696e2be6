// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// How to store a value, and what to keep beside it: everything about a put but the key and the bytes.
///
/// ```swift
/// try cache.put(data, forKey: key, options: PutOptions(expires: .days(7), tags: ["thumbs"]))
/// ```
///
/// The key and all that is kept beside the value take at most 64 KiB together.
public struct PutOptions: Sendable, Equatable {
    /// Until when the value is valid; nil for the configuration's default.
    public var expires: Expiration?
    /// What an access does to that; nil for the configuration's default.
    public var onAccess: Expiration.OnAccess?
    /// How long after its expiration the value is still returned to callers that accept stale values.
    ///
    /// Rounded down to the millisecond.
    ///
    /// It is kept even if the value never expires, in case it is given an expiration later.
    public var staleFor: Duration?
    /// How long it took to compute the value, kept to about 6 per cent.
    ///
    /// `value(forKey:orCompute:)` measures it unless it is given.
    public var computeTime: Duration?
    /// The entity tag that the value came with, as it was (RFC 9110, section 8.8.3).
    public var entityTag: String?
    /// The Last-Modified that the value came with, as it was (RFC 9110, section 8.8.2).
    public var lastModified: String?
    /// The media type of the value.
    public var contentType: String?
    /// Words by which values can be removed together.
    public var tags: [String]
    /// Any other names and values.
    public var metadata: [String: String]
    /// When the put returns; nil for the configuration's default.
    ///
    /// Computed values, files, `putIfAbsent`, `update` and `increment` are always on disk when the call returns, but for
    /// computed values that are kept in memory alone (``keeps``).
    public var writing: CacheConfiguration.Writing?
    /// Whether the value is kept in memory, on disk or both; nil for the configuration's default.
    public var keeps: CacheConfiguration.Keeping?
    /// How long the value stays in this process's memory at most; nil for the configuration's default.
    ///
    /// From the put on. It is not kept on disk: a value that is read from there again has the default of the process that
    /// reads it. A negative one counts as 0.
    public var memoryLifetime: Duration?
    /// What the value costs in this process's memory; nil for the configuration's default.
    ///
    /// In the unit of ``CacheConfiguration/Memory/costLimit``; a negative one counts as 0. It isn't kept on disk either.
    /// If that unit is not the byte, set ``CacheConfiguration/Memory/countLimit`` too.
    public var memoryCost: Int?
    /// Whether other machines are told nothing of the value, nor of its removal, whatever servers there are to
    /// share values through.
    ///
    /// Who stores under a key so always does: of another value there others would not be told that it has gone.
    package var staysHere = false

    /// All parameters are optional.
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

    /// The terms of a value that is there, for another one in its place: it expires at the same moment, with the same
    /// effect of accesses, stale period, headers, tags and metadata.
    ///
    /// - Parameter entry: of the value that is there.
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

    /// Sets what of this the record keeps as it is.
    func describe(_ record: inout Record) {
        record.cost = computeTime
        // Putting empty details together costs 300 instructions.
        let hasHeaders = entityTag != nil || lastModified != nil || contentType != nil
        guard hasHeaders || !tags.isEmpty || !metadata.isEmpty || staysHere else { return }
        var details = RecordDetails()
        (details.entityTag, details.lastModified) = (entityTag, lastModified)
        (details.contentType, details.tags, details.metadata) = (contentType, tags, metadata)
        details.staysHere = staysHere
        record.details = details
    }
}
