// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

/// An entry as `put`, `info` and `ls` write it in JSON.
///
/// What does not apply is left out.
struct EntryDescription: Encodable {
    let key: String?
    let keyDigest: String
    let digest: String
    let size: Int
    let created: Date
    let lastAccess: Date?
    let expires: Date?
    let staleUntil: Date?
    /// Seconds.
    let extendsOnAccess: Double?
    /// Seconds.
    let cost: Double?
    let etag: String?
    let lastModified: String?
    let contentType: String?
    let tags: [String]?
    let metadata: [String: String]?
    var entryPath: String?
    var objectPath: String?

    init(_ entry: CacheEntry) {
        key = entry.key
        keyDigest = entry.keyDigest.description
        digest = entry.digest.description
        size = entry.size
        created = entry.created
        lastAccess = entry.lastAccess
        expires = entry.expires
        staleUntil = entry.staleUntil
        extendsOnAccess = entry.extendsOnAccess?.inSeconds
        let attributes = entry.attributes
        cost = attributes.cost?.inSeconds
        etag = attributes.entityTag
        lastModified = attributes.lastModified
        contentType = attributes.contentType
        tags = attributes.tags.isEmpty ? nil : attributes.tags
        metadata = attributes.metadata.isEmpty ? nil : attributes.metadata
    }

    /// The names, for the help texts of the commands.
    static let help = """
        JSON: key, keyDigest, digest, size (bytes), created, lastAccess, expires, staleUntil (UTC, ISO 8601),
        extendsOnAccess, cost (seconds), etag, lastModified, contentType, tags, metadata. What does not apply
        is left out.
        """
}

extension CacheEntry {
    /// What stands for the key on output: the key itself, or its digest where the cache does not know it.
    var name: String {
        key ?? "sha256:\(keyDigest)"
    }
}
