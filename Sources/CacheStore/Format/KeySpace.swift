// SPDX-License-Identifier: Apache-2.0

/// The namespace of a key, which depends on who uses the key.
///
/// A caller's key can be any text. The cache therefore names its own entries by digests of bytes that are not valid
/// UTF-8, so that no call with a key, no list of keys and no other machine can name them. The entries of all namespaces
/// are stored together on disk, and the same limits and selections apply to them.
package enum KeySpace: Sendable, Hashable, CaseIterable {
    /// Keys of `SharedCache` and its views, which other machines share.
    case callers
    /// HTTP responses, their flights and their records.
    case downloads
    /// The cache's own work, such as choosing the process that sends to remote stores.
    case upkeep

    /// The bytes that are hashed before the key.
    ///
    /// UTF-8 never contains 0xFF, and the NUL ends the name of the namespace.
    var mark: [UInt8] {
        switch self {
        case .callers: []
        case .downloads: [0xff] + "http\0".utf8
        case .upkeep: [0xff] + "diskcache\0".utf8
        }
    }
}
