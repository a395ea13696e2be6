// SPDX-License-Identifier: Apache-2.0

/// Whose keys these are.
///
/// Any text is a key of the callers, so what the cache stores for itself is named by digests of bytes that are no text: no
/// call with a key, no list of keys and no other machine can name it. Both kinds of entries lie side by side on disk, and
/// the same limits and selections hold for both.
package enum KeySpace: Sendable, Hashable, CaseIterable {
    /// Keys of `SharedCache` and its views, which other machines share.
    case callers
    /// HTTP responses, their flights and their records.
    case downloads
    /// The cache's own work, such as who sends to other machines.
    case upkeep

    /// The bytes that are hashed before the key.
    ///
    /// 0xFF is in no UTF-8, and the NUL ends the name of the space.
    var mark: [UInt8] {
        switch self {
        case .callers: []
        case .downloads: [0xff] + "http\0".utf8
        case .upkeep: [0xff] + "diskcache\0".utf8
        }
    }
}
