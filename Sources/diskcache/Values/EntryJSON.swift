// SPDX-License-Identifier: Apache-2.0

import DiskCache

extension CacheEntry {
    /// The key as printed: the key itself, or its digest if the cache doesn't know it.
    var name: String {
        key ?? "sha256:\(keyDigest)"
    }

    /// As `put`, `info` and `ls` write it; what does not apply is left out.
    var json: JSON.Object {
        [
            "key": key, "keyDigest": keyDigest.description, "digest": digest.description, "size": size,
            "created": created, "lastAccess": lastAccess, "expires": expires, "staleUntil": staleUntil,
            "extendsOnAccess": extendsOnAccess?.inSeconds, "computeTime": computeTime?.inSeconds,
            "etag": entityTag, "lastModified": lastModified,
            "contentType": contentType, "tags": tags.isEmpty ? nil : tags,
            "metadata": metadata.isEmpty ? nil : metadata,
        ]
    }

    /// The names in ``json``, for the help texts of the commands.
    static let help = """
        JSON: key, keyDigest, digest, size (bytes), created, lastAccess, expires, staleUntil (UTC, ISO 8601),
        extendsOnAccess, computeTime (seconds), etag, lastModified, contentType, tags, metadata. What does not apply
        is left out.
        """
}
