// SPDX-License-Identifier: Apache-2.0

/// The operations that the probe can repeat.
enum Operation: String, CaseIterable {
    /// A value read from the disk.
    case get
    /// A value from memory.
    case memoryHits = "memory-hits"
    /// A key that was never put in this directory.
    case miss
    /// A key that was put and removed.
    case missRemoved = "miss-removed"
    /// A new value under a new key.
    case new
    /// The same value under the same key.
    case overwrite
    /// A new value under the same key.
    case replace
    /// A value that is queued under a new key; nothing is published meanwhile.
    case behind
    /// A value that is only kept in memory, under the same key.
    case memoryOnly = "memory-only"
    /// A value that is computed and stored under a new key.
    case compute
    case touch, contains, entry
    /// A removal of an absent key.
    case remove
    /// A removal of all values at once.
    case removeAll = "remove-all"
    /// A free lock that is taken and released.
    case lock
    /// A cache that is opened and released.
    case open
    /// A collection that finds nothing to delete.
    case scan
    /// A collection that keeps SIZE entries.
    case trim
    /// Small values under keys that no other operation uses, for operations on a full directory.
    case fill
    /// Only the creation of a key, as in `new`.
    case key
}
