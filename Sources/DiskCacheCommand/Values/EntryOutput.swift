// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

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

    /// What `info` prints of it, and the words beside it; nil: does not apply.
    func rows(_ now: Date) -> [(name: String, value: String?)] {
        let size = Quantity.text(bytes: Int64(self.size))
        return [
            ("size", self.size < 1024 ? size : "\(size) (\(self.size) B)"),
            ("created", Quantity.moment(created, now)),
            ("last access", lastAccess.map { Quantity.moment($0, now) }),
            ("expires", expires.map { Quantity.moment($0, now) } ?? "never"),
            ("extends on access", extendsOnAccess.map { Quantity.text($0) }),
            ("stale until", staleUntil.map { Quantity.moment($0, now) }),
            ("compute time", computeTime.map { "\($0)" }),
            ("etag", entityTag),
            ("last modified", lastModified),
            ("content type", contentType),
        ]
            + tags.map { ("tag", $0) }
            + metadata.sorted { $0.key < $1.key }.map { ("meta", "\($0.key)=\($0.value)") }
    }
}
