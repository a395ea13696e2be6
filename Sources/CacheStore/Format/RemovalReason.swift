// SPDX-License-Identifier: Apache-2.0

/// Why something was removed from the cache.
///
/// Every removal has exactly one reason.
@nonexhaustive
public enum RemovalReason: String, Sendable, Codable, CaseIterable, CodingKeyRepresentable {
    /// A file in `tmp`, or the lock of a computation, whose process has ended.
    case staleTemporary
    /// An entry past its expiration and its stale period.
    case expired
    /// An entry that was removed by a call for many keys at once (`removeAll`).
    case cleared
    /// An entry whose value's bytes are missing.
    case dangling
    /// An entry whose metadata can't be read.
    case corrupt
    /// Bytes that no key refers to.
    case orphan
    /// An entry older than the age limit.
    case age
    /// An entry unused for longer than the idle limit.
    case idle
    /// An entry that exceeds the limit on the number of entries; the least recently used ones are removed first.
    case entries
    /// An entry that exceeds the size limit; the least recently used ones are removed first.
    case size
    /// An entry that was evicted to keep space free on the file system; the least recently used ones are removed first.
    case freeSpace

    /// Whether a valid entry was removed for lack of room.
    var isEviction: Bool { self == .entries || self == .size || self == .freeSpace }
}
