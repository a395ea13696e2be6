// SPDX-License-Identifier: Apache-2.0

/// The owner of a key.
///
/// Any text may be a caller's key, so the cache's own entries are named by digests of bytes that are not text: no call with
/// a key, no list of keys and no other machine can name them. Both kinds of entries are stored side by side on disk, with
/// the same limits and selections.
package enum KeySpace: Sendable, Hashable, CaseIterable {
    /// Keys of `SharedCache` and its views, which other machines share.
    case callers
    /// HTTP responses, their flights and their records.
    case downloads
    /// The cache's own work, such as choosing the process that sends to remote stores.
    case upkeep

    /// The bytes that are hashed before the key.
    ///
    /// UTF-8 never contains 0xFF, and the NUL ends the name of the space.
    var mark: [UInt8] {
        switch self {
        case .callers: []
        case .downloads: [0xff] + "http\0".utf8
        case .upkeep: [0xff] + "diskcache\0".utf8
        }
    }
}
