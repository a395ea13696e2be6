// SPDX-License-Identifier: Apache-2.0

package import CacheStore

/// The paths on a server: contents are named by their digests, entries by the digests of their keys.
package struct RemotePaths: Sendable, Hashable {
    /// The content path in Bazel's HTTP cache protocol.
    package static let defaultContent = "/cas/{digest}"
    package static let defaultEntry = "/ac/{key}"

    package let contentTemplate: PathTemplate
    package let entryTemplate: PathTemplate
    /// The namespace; empty for none.
    package let namespace: String

    /// Creates paths from templates.
    ///
    /// - Parameter namespace: separates the entries of one group of users from those of other groups; at most 64 ASCII
    ///   letters, digits, `-`, `_` and `.`, with no `.` at the beginning. All groups share contents, since contents are
    ///   named by their digests.
    /// - Returns: nil if a template or the namespace is invalid.
    package init?(
        content: String = RemotePaths.defaultContent,
        entry: String = RemotePaths.defaultEntry,
        namespace: String = ""
    ) {
        guard let content = PathTemplate(content), let entry = PathTemplate(entry),
            Self.isNamespace(namespace) || namespace.isEmpty && !content.hasNamespace && !entry.hasNamespace
        else { return nil }
        contentTemplate = content
        entryTemplate = entry
        self.namespace = namespace
    }

    /// Returns the path of the content with this digest.
    package func content(_ digest: Digest) -> String {
        contentTemplate.path(for: digest, namespace: namespace)
    }

    /// Returns the path of an entry.
    ///
    /// - Parameter key: the digest of its key, which names the entry on disk.
    package func entry(_ key: Digest) -> String {
        entryTemplate.path(for: name(ofEntry: key), namespace: namespace)
    }

    /// Returns the digest that names an entry on the server, Redis included.
    ///
    /// This is the key's digest, unless there is a namespace that the path does not contain: then it is the SHA-256 of
    /// the namespace, a zero byte, and the 32 bytes of the key's digest.
    package func name(ofEntry key: Digest) -> Digest {
        guard !namespace.isEmpty, !entryTemplate.hasNamespace else { return key }
        let bytes = Array(namespace.utf8) + [0] + (0..<32).map(key.byte)
        return Digest(of: bytes.span)
    }

    /// Returns whether a string is a valid namespace.
    package static func isNamespace(_ name: String) -> Bool {
        guard (1...64).contains(name.utf8.count), name.utf8.first != UInt8(ascii: ".") else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "."):
                true
            default: false
            }
        }
    }
}
