// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials

extension CacheEntry {
    /// The key to print, or its digest if the cache does not store the key.
    var name: String {
        key ?? "sha256:\(keyDigest)"
    }

    /// The entry as the JSON of `put`, `info` and `ls`; fields that do not apply are omitted.
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

    /// The section about the names in ``json``, in help texts.
    static let help = """
        JSON: key, keyDigest, digest, size (bytes), created, lastAccess, expires, staleUntil (UTC, ISO 8601),
        extendsOnAccess, computeTime (seconds), etag, lastModified, contentType, tags, metadata. Fields that
        do not apply are omitted.
        """

    /// Returns the labels and values that `info` prints; a value is nil if it does not apply.
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
