// SPDX-License-Identifier: Apache-2.0

import DiskCache

extension CacheEntry {
    /// What stands for the key on output: the key itself, or its digest where the cache does not know it.
    var name: String {
        key ?? "sha256:\(keyDigest)"
    }

    /// As `put`, `info` and `ls` write it; what does not apply is left out.
    var json: JSON.Object {
        [
            "key": key, "keyDigest": keyDigest.description, "digest": digest.description, "size": size,
            "created": created, "lastAccess": lastAccess, "expires": expires, "staleUntil": staleUntil,
            "extendsOnAccess": extendsOnAccess?.inSeconds, "cost": attributes.cost?.inSeconds,
            "etag": attributes.entityTag, "lastModified": attributes.lastModified,
            "contentType": attributes.contentType, "tags": attributes.tags.isEmpty ? nil : attributes.tags,
            "metadata": attributes.metadata.isEmpty ? nil : attributes.metadata,
        ]
    }

    /// The names in ``json``, for the help texts of the commands.
    static let help = """
        JSON: key, keyDigest, digest, size (bytes), created, lastAccess, expires, staleUntil (UTC, ISO 8601),
        extendsOnAccess, cost (seconds), etag, lastModified, contentType, tags, metadata. What does not apply
        is left out.
        """
}
